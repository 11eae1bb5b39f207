"""The nouns and the rules: frozen values and pure functions, no input or output."""
