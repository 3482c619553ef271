"""How Kubernetes wants labels, keys, names of ports and schedules to be written.

As in k8s.io/apimachinery/pkg/util/validation, and for schedules in github.com/robfig/cron/v3.
"""

from __future__ import annotations

import base64
import binascii
import re

DNS_LABEL_LIMIT = 63
DNS_SUBDOMAIN_LIMIT = 253
_PORT_NAME_LIMIT = 15
_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_QUALIFIED = re.compile(r"[A-Za-z0-9](?:[-._A-Za-z0-9]*[A-Za-z0-9])?")
_DATA_KEY = re.compile(r"[-._A-Za-z0-9]+")
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9](?:-?[a-z0-9])*")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_DAYS = "sun mon tue wed thu fri sat"
_FIELDS = ((0, 59, ""), (0, 23, ""), (1, 31, ""), (1, 12, _MONTHS), (0, 6, _DAYS))
"""Least, most and names of minute, hour, day, month and day of the week."""
_MACROS = {"@annually", "@daily", "@hourly", "@midnight", "@monthly", "@weekly", "@yearly"}
_EVERY = re.compile(r"@every (?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+")


def is_dns_label(text: str) -> bool:
    """Tell whether `text` can be the name of a namespace, a container or the port of a Service."""
    return len(text) <= DNS_LABEL_LIMIT and bool(_DNS_LABEL.fullmatch(text))


def is_dns_subdomain(text: str) -> bool:
    """Tell whether `text` can be the name of most objects."""
    return len(text) <= DNS_SUBDOMAIN_LIMIT and bool(_DNS_SUBDOMAIN.fullmatch(text))


def is_label_key(text: str) -> bool:
    """Tell whether `text` can be the key of a label: a name, perhaps below a domain."""
    domain, slash, name = text.rpartition("/")
    return (is_dns_subdomain(domain) or not slash) and bool(name) and is_label_value(name)


def is_annotation_key(text: str) -> bool:
    """Tell whether `text` can be the key of an annotation, whose domain may have capitals."""
    return is_label_key(text.lower())


def is_label_value(text: str) -> bool:
    """Tell whether `text` can be the value of a label; an empty one can."""
    return not text or (len(text) <= DNS_LABEL_LIMIT and bool(_QUALIFIED.fullmatch(text)))


def is_data_key(text: str) -> bool:
    """Tell whether `text` can be a key of a ConfigMap or Secret, which is the name of a file."""
    return len(text) <= DNS_SUBDOMAIN_LIMIT and bool(_DATA_KEY.fullmatch(text)) and text != "." and text[:2] != ".."


def is_port_name(text: str) -> bool:
    """Tell whether `text` can name the port of a container."""
    return len(text) <= _PORT_NAME_LIMIT and bool(_PORT_NAME.fullmatch(text))


def is_base64(text: str) -> bool:
    """Tell whether `text` is base64; line breaks may be in it."""
    try:
        base64.b64decode(re.sub(r"[\r\n]", "", text), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def is_schedule(text: str) -> bool:
    """Tell whether `text` says when a CronJob runs."""
    if text.startswith("@"):
        return text in _MACROS or bool(_EVERY.fullmatch(text))
    fields = text.split()
    return len(fields) == len(_FIELDS) and all(
        _is_schedule_entry(entry, *allowed)
        for field, allowed in zip(fields, _FIELDS, strict=True)
        for entry in field.split(",")
    )


def _is_schedule_entry(entry: str, least: int, most: int, names: str) -> bool:
    span, slash, step = entry.partition("/")
    if slash and not (step.isdecimal() and int(step) > 0):
        return False
    if span in ("*", "?"):
        return True
    known = {name: number for number, name in enumerate(names.split(), start=least)}
    ends = [known.get(end.lower(), int(end) if end.isdecimal() else -1) for end in span.split("-")]
    return len(ends) <= 2 and all(least <= end <= most for end in ends) and ends == sorted(ends)
