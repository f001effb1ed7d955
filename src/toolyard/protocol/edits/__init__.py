"""Edits of texts: what an edit means, the splices that carry it out, the changes between two texts, notebooks."""
