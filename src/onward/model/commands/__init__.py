"""What a value may become inside a command: which words are source code, and how text goes safely into a shell's."""
