"""Names of what holds passwords, tokens or keys: files and folders, which secret_files.py reads, variables and flags.

Patterns are in lower case, and the case of a name does not matter. `NAME` is a file in any folder, `A/B` a file of that
name in a folder of that name, and `NAME/` is everything below a folder. `*` and `?` stay within one name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

SECRET_NAMES: Mapping[str, tuple[str, ...]] = {
    "variables with passwords": (".env", ".env.*", ".env-*", ".env_*", "*.env", ".envrc", ".flaskenv"),
    "a private key": (
        *("*.pem", "*.key", "*.ppk", "*.p8", "*.pk8", "*.pvk", "*_rsa", "*_dsa", "*_ecdsa", "*_ed25519"),
        *("id_rsa.*", "id_dsa.*", "id_ecdsa.*", "id_ed25519.*", "id_*_sk", "ssh_host_*_key", "secring.*", "*.ovpn"),
        *(".ssh/", ".gnupg/", ".gpg/"),
    ),
    "a key store": (
        *("*.p12", "*.pfx", "*.jks", "*.jceks", "*.bks", "*.keystore", "*.kdb", "*.kdbx", "*.psafe3", "*.keychain"),
        *(
            "*.keychain-db",
            "*.keytab",
            "krb5cc*",
            "*.ccache",
            "wallet.dat",
            "key3.db",
            "key4.db",
            "logins.json",
            "keyrings/*.keyring",
        ),
        *("*.agilekeychain/", "*.opvault/", ".password-store/"),
    ),
    "the login of a server": (
        *(".netrc", "_netrc", ".authinfo", ".authinfo.gpg", ".git-credentials", ".wgetrc", ".curlrc", ".ftppass"),
        *(".ftpconfig", "sftp-config.json", ".vscode/sftp.json", ".remote-sync.json", ".smbcredentials", "*.htpasswd"),
        *("htpasswd", ".passwd", "passwd", ".hg/hgrc", "gh/hosts.yml", "glab-cli/config.yml", ".config/hub"),
        *("filezilla.xml", "sitemanager.xml", "recentservers.xml", "ngrok.yml", "cookies.txt", "cookies.sqlite"),
        *(".git-credential-cache/", ".subversion/auth/", ".msmtprc", ".fetchmailrc", ".credentials"),
        *(".idea/datasources.local.xml", ".idea/webservers.xml", ".idea/deployment.xml", ".jupyter/", ".cloudflared/"),
    ),
    "the login of a database": (
        *(".pgpass", "pgpass.conf", ".pg_service.conf", ".my.cnf", ".mylogin.cnf", ".odbc.ini", ".dbt/profiles.yml"),
        *(".snowsql/", ".snowflake/"),
    ),
    "the login of a package index": (
        *(".pypirc", "pip.conf", "pip.ini", ".npmrc", ".yarnrc.yml", "pypoetry/auth.toml", "uv/credentials/"),
        *(".cargo/credentials", ".m2/settings.xml", "settings-security.xml", ".gradle/gradle.properties"),
        *(".gem/credentials", "composer/auth.json", ".composer/auth.json", ".jfrog/", ".continuum/"),
    ),
    "the login of a cloud": (
        *("credentials", "credentials.json", "credentials.y*ml", "credentials.toml", "credentials.ini"),
        *("credentials.csv", "credentials.db", "credentials.xml", "credentials.cfg", "credentials.tfrc.json"),
        *("*accesskeys.csv", "rootkey.csv", "*_credentials.csv", "*default_credentials.json", "access_tokens.db"),
        *("accesstokens.json", "msal_token_cache.*", "azureprofile.json", "client_secret*.json"),
        *("service-account*.json", "service_account*.json", "*-service-account.json", "*_service_account.json"),
        *(".s3cfg", ".s3cfg-*", ".boto", ".passwd-s3fs", "passwd-s3fs", "rclone.conf", ".rclone.conf"),
        *(".databrickscfg", ".databricks/token-cache.json", "doctl/config.y*ml", "hcloud/cli.toml", "scw/config.yaml"),
        *(".linode-cli", ".vultr-cli.yaml", ".ovh.conf", "openstack/clouds.y*ml", ".saml2aws"),
        *(
            ".aws/",
            ".aws-vault/",
            ".awsvault/",
            ".azure/",
            ".gcloud/",
            ".config/gcloud/",
            "gcloud/legacy_credentials/",
            ".oci/",
            ".aliyun/",
            ".bluemix/",
            ".fly/",
            ".mc/",
            ".minio/",
        ),
    ),
    "the login of a cluster": ("kubeconfig", "*.kubeconfig", "kubeconfig.y*ml", "kubeconfig.json", ".kube/"),
    "the login of a registry": (
        ".dockercfg",
        ".dockerconfigjson",
        "*.dockerconfigjson",
        "containers/auth.json",
        "helm/registry/config.json",
        ".docker/",
    ),
    "a token of a machine learning service": (
        *("kaggle.json", "huggingface/token", "huggingface/stored_tokens", "wandb/settings", ".comet.config"),
        *(
            ".dvc/config.local",
            ".dvc/tmp/",
            "gdrive-user-credentials.json",
            ".modal.toml",
            ".ngc/",
            ".runpod/",
            ".beam/",
        ),
        *(".paperspace/", ".lambda_cloud/", "vast_api_key", ".vast_api_key", "roboflow/config.json", "dagshub/tokens"),
        *(".metaflowconfig/", ".prefect/profiles.toml", ".polyaxon/", "replicate/hosts", ".cdsapirc", ".ecmwfapirc"),
        *(".urs_cookies", ".codex/auth.json", ".claude/.credentials.json", "oauth_creds.json"),
        *("clearml.conf", ".kaggle/", ".huggingface/", ".config/wandb/", ".neptune/", ".lightning/", ".determined/"),
    ),
    "the state or the variables of Terraform": (
        *("*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", ".terraformrc", "terraform.rc"),
    ),
    "secrets": (
        *("secret.y*ml", "secret.json", "secret.toml", "secret.ini", "secret.cfg", "secret.txt", "secret.properties"),
        *("secrets.y*ml", "secrets.json", "secrets.toml", "secrets.ini", "secrets.cfg", "secrets.txt"),
        *("secrets.properties", ".secret", ".secrets", "*.secret", "*.secrets", ".secrets/"),
        *(".vault-token", "*vault_pass", "*vault_pass.txt", "*vault-pass*", "*vault_password*"),
        *("password.txt", "passwords.txt", "passwords.csv"),
    ),
    "the history of a shell": (".*_history", "profile_default/history.sqlite"),
}
"""What such a file holds, to the patterns of its names."""

HARMLESS_NAMES = (
    *("*.example", "*.sample", "*.template", "*.dist", "*.tmpl", "*.pub", "*.py", "*.pyi"),
    *(".env?example", ".env?sample", ".env?template"),
)
"""Files that are meant to be shared, or code, whatever else their names say. What they hold still counts."""

TOKEN_NAMES = (
    *("token", ".token", "*.token", "*_token", "*-token", "token.txt", "*_token.txt", "*-token.txt"),
    *("api_key*", "api-key*", "apikey*", ".api_key*", "*_api_key", "*_api_key.txt", "*password", "*password.txt"),
)
"""Files that hold a token where they hold a single word, and else may be anything, such as a vocabulary."""

_SECRETS = {
    *("password", "passwd", "passphrase", "passcode", "pwd", "secret", "apikey", "credential", "credentials"),
    *("creds", "token", "pat", "bearer", "jwt", "pw", "pass"),
}
_KEYS = {
    *("api", "access", "secret", "private", "auth", "account", "encryption", "ssh", "signing", "master", "storage"),
    *("wandb", "aws", "kaggle", "openai", "anthropic", "fernet"),
}
_WHOLE = ("password", "passwd", "passphrase")
"""End words that need no mark before them, as of PGPASSWORD."""
_WORD_END = re.compile(r"[-_.]+|(?<=[a-z0-9])(?=[A-Z])")
_TOKENS = {
    "pad",
    "unk",
    "oov",
    "mask",
    "bos",
    "eos",
    "sos",
    "start",
    "end",
    "cls",
    "sep",
    "special",
    "stop",
    "blank",
    "go",
}
_PASSES = {
    *("first", "second", "one", "two", "single", "multi", "each", "per", "num", "n", "max", "min", "current"),
    *("forward", "backward", "low", "high", "band", "all"),
    *("proxy", "fastcgi", "uwsgi", "grpc", "scgi", "memcached"),
}
"""Words before `pass` that make it a run over data, a filter, or a setting of nginx."""

_PLACEHOLDER = r"(?!\$[({]|%\(|[{<])"
_LOGIN = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.-]{{0,30}}://[^\s/?#:@]*:{_PLACEHOLDER}[^\s/?#@]+@"
    rf"|https?://(gh[pousr]_|github_pat_|glpat-|x-token-auth)[^\s/?#@]+@|\bhooks\.slack\.com/services/\w"
    rf"|[?&;](\w*(token|secret|password|passwd|apikey|api_key)|sig|signature|x-amz-signature)={_PLACEHOLDER}[^\s&]"
    rf"|(^|;)\s*(password|pwd|accountkey|sharedaccesskey|sharedaccesssignature)\s*=\s*{_PLACEHOLDER}[^\s;]",
    re.IGNORECASE,
)
"""An address or a connection with a password, a token or a signature; a placeholder for one is none."""


_REST = re.compile(r"[^\s&;,\"']*")


def _names_secret(words: Sequence[str]) -> bool:
    """Tell whether a variable or flag of these words, in lower case, carries a secret: api, key; not pad, token."""
    *before, last = words
    if last.isdecimal() and before:  # as of API_KEY_2
        return _names_secret(before)
    last = last.rstrip("0123456789") or last
    if last == "key":
        return bool(before) and before[-1] in _KEYS
    if last == "token" and before and before[-1] in _TOKENS:
        return False
    if last == "pass" and before and before[-1] in _PASSES:
        return False
    return last in _SECRETS or last.endswith(_WHOLE)


def is_secret_name(name: str) -> bool:
    """Tell whether a variable or flag of this name carries a secret: API_KEY, hubToken; not pad-token."""
    words = split_name(name)
    return bool(words) and _names_secret(words)


def split_name(name: str) -> list[str]:
    """Return the words of a name in lower case: logDir, log-dir and LOG_DIR are log and dir."""
    return [word.lower() for word in _WORD_END.split(name) if word]


def hide_logins(text: str, mask: str) -> str:
    """Return a text with `mask` in place of what `holds_login` finds; the host behind it stays."""
    parts, end = [], 0
    for found in _LOGIN.finditer(text):
        is_before_host = found[0].endswith("@")
        parts += [text[end : found.start()], mask + "@" * is_before_host]
        # Without a host behind it, the pattern ends with the first character of the secret.
        rest = None if is_before_host else _REST.match(text, found.end())
        end = rest.end() if rest else found.end()
    return "".join(parts) + text[end:]


def holds_login(text: str) -> bool:
    """Tell whether a text has an address, or a connection, with what signs in there: postgres://me:secret@host."""
    return bool(_LOGIN.search(text))


_GAP = r"[^|;&]{0,200}?\s"
"""Other words of the same command."""
_COMMAND_LOGIN = re.compile(
    rf"(?P<kept>\b(?:curl|smbclient){_GAP}(?:-[uU]|--(?:proxy-)?user)[\s=]?[\"']?[^\s\"'$:%=]+[:%]"
    rf"|\bredis-cli{_GAP}-a\s?[\"']?"
    rf"|\b(?:mysql\w*+|mariadb[\w-]{{0,40}}+|mongo\w*+|sshpass|(?:docker|podman|skopeo|helm|registry)\s+login){_GAP}-p\s?[\"']?"
    rf"|\bldap\w{{1,30}}{_GAP}-w\s?[\"']?"
    r"|\bmc\s{1,9}(?:-\S{1,60}\s{1,9}){0,5}(?:alias\s{1,9}set|config\s{1,9}host\s{1,9}add)\s{1,9}\S{1,200}\s{1,9}\S{1,200}\s{1,9}[\"']?[^\s\"'|;&]+[\"']?\s+[\"']?"
    r"|\baws\s{1,9}configure\s{1,9}set\s{1,9}\S{0,60}(?:secret|token)\S{0,60}\s{1,9}[\"']?"
    r"|(?<!\S)pass:)"
    r"(?P<secret>[^\s\"'|;&$][^\s\"'|;&]*)"
)
"""A password that a program takes by its place or by a short flag, such as curl -u NAME:PASSWORD."""


def hide_command_logins(text: str, mask: str) -> str:
    """Return commands with `mask` in place of what `holds_command_login` finds."""
    return _COMMAND_LOGIN.sub(lambda found: found["kept"] + mask, text)


def holds_command_login(text: str) -> bool:
    """Tell whether commands of a shell give a password without a name, such as redis-cli -a PASSWORD."""
    return bool(_COMMAND_LOGIN.search(text))
