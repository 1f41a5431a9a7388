"""The operator's pages: rendered here, with one script and one style sheet, and nothing from anywhere else."""
