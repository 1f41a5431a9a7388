"""The V4A patch format as pure text work: parse, locate, plan. Knows no file system and writes nothing."""
