"""The parts of ``protocol.reply``: from what a model wrote to think, content and attachments.

values        Reply, ReplyError and what they hold
escapes       the inside of a JSON string, mended: backslashes, LaTeX, surrogates
straight      a reply as it should be, read at once
strict        JSON as it should be
lenient_json  a tolerant reader of one JSON object, with
  reading       what it gives
  strings       its strings
  quotes        where a string ends
  scalars       what has no quotes
find          which object of a text is the reply
fields        an object as a Reply
placeholders  the ``{{type:id}}`` of a content, and what is wrong with them
stream        a reply while it is being written
entities      HTML entities in place of quotes
syntax        where the JSON of a text that is no reply breaks off
prompt        the text that asks a model for this format
"""
