"""The confined project root: safe paths, ignore rules, encodings, stored outputs."""
