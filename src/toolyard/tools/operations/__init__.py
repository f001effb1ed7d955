"""The commands of FileOperator, one module for each family."""
