"""The parts of ``protocol.reply``: from a model's text to think, content and attachments.

values        Reply, ReplyError and their parts
escapes       repairs inside a JSON string: backslashes, LaTeX, surrogates
plain_reply   a well-formed reply, read by a fast path
strict        strict JSON
lenient_json  a tolerant reader of one JSON object, with
  reading       its results
  strings       its strings
  quotes        the end of a string
  scalars       values without quotes
find          the object of a text that is the reply
fields        an object as a Reply
placeholders  the ``{{type:id}}`` of a content, and their problems
stream        a reply while it is being written
entities      HTML entities in place of quotes
syntax        the position at which invalid JSON breaks off
prompt        the text that asks a model for this format
"""
