"""The other protocols of models, OpenAI's Responses and Anthropic's Messages, as translations from and to chat.

The gateway's own language is that of chat completions. Each package translates what goes to a provider and what comes
from it, and what comes from a client and goes to it: without I/O, clock or randomness. What a protocol has no word for
is left out, and ``docs/providers.md`` lists it.
"""
