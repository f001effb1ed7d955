"""The parts of ``protocol.reply``: from a model's text to think, content and attachments.

reply_values             Reply, ReplyError and their parts
reply_fields             an object as a Reply; a well-formed reply by a fast path
strict                   strict JSON
find                     the object of a text that is the reply
lenient_json             a tolerant reader of one JSON object, with
  strings                  its strings, and the end of a string
escapes                  repairs inside a JSON string: backslashes, LaTeX, surrogates
attachment_placeholders  the ``{{type:id}}`` of a content, and their problems
stream                   a reply while it is being written
reply_prompt             the text that asks a model for this format
"""
