"""Recipes that a site installs, and what a request may fill in of them.

Recipes themselves are folders: the site's own, or those that packages bring by the entry point onward.recipes.
"""
