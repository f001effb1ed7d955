"""The language of tool requests in text.

scanner  a model's text to its calls
marks    the marks of a request, and the events of a scanned text
block    one block, read and written
prose    the text around blocks
"""
