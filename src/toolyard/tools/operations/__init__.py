"""What FileOperator can do: one module for each family of commands."""
