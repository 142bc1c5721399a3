"""All kinds of things that are found, with what each is."""

from __future__ import annotations

from threadline.render.redaction.formed import FORMATS
from threadline.render.redaction.services import SERVICES

BY_PLACE = {
    "private-key": "private key in armour: PEM, OpenSSH, PGP, PuTTY",
    "azure-client-secret": "Azure client secret",
    "password": "what is assigned to a name that says password",
    "password-hash": "hash of a password, as crypt, htpasswd and bcrypt write it",
    "assigned-secret": "what is assigned to a name that says key, token, secret or credential",
    "random-value": "a random value of a variable or key that says nothing of it",
    "authorization-header": "what an Authorization header says",
    "bearer-token": "token behind the word Bearer",
    "basic-authorization": "login in base64 behind the word Basic",
    "cookie": "what a Cookie or Set-Cookie header says",
    "url-password": "password of a login in a URL",
    "url-token": "token in place of a login in a URL",
    "url-parameter": "signature, session or code among a URL's parameters",
    "curl-password": "password behind curl's -u",
    "webhook": "address of a webhook, which is its only key",
}
"""Kinds that are told by where they stand."""
PERSONAL = {
    "email": "e-mail address",
    "ip": "IP address",
    "host": "name of a machine or of an inner network",
    "home": "home directory",
    "user": "name of an account",
}
"""Kinds that tell of people and machines."""
KINDS: dict[str, str] = {
    **{rule.kind: rule.what for rule in FORMATS},
    **{service.kind: service.what for service in SERVICES},
    **BY_PLACE,
    **PERSONAL,
}
"""Every kind, and what it is."""
