"""The protocols that clients and model providers speak; inside a turn all of them are chat completions."""
