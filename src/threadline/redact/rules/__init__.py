"""The rules that find secrets and personal data in a text.

- By format: `tokens` finds what a token format identifies. `formats` has the formats and named services as data, and
  `checksums` verifies tokens. `multiline` and `variables` find tokens in pieces, and `entropy` random-looking values.
- By name: `assignments`, `arguments` and `contexts` find values beside a telling name; `heuristics` decides which names
  tell, and which values can be secrets.
- By origin: `provenance` knows commands that print secrets, and files that contain them.
- `personal` finds personal data.

`prefilter` and `patterns` make the searches fast. `threadline.redact.scanner` applies the rules.
"""
