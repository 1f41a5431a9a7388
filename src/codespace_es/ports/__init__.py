"""What the rules need of the world, as interfaces. Each docstring is the guarantee that every adapter keeps."""
