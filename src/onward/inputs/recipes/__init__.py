"""Recipes that a site installs, and what a request may fill in of them.

Not here: the recipes themselves: they are folders of the site, or come from packages through the entry point onward.recipes.
"""
