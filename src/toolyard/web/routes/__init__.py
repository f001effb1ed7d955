"""The routes: a folder for each field, in it a module for each resource."""
