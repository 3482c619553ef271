"""Which files hold passwords, tokens or keys, by name and by content, and which only look like it."""

from __future__ import annotations

import json
import string
import time
from pathlib import Path

import pytest

from trainchart.images.ignore import parse_ignore_rules
from trainchart.images.plan import TRAINING_DOCKERFILE
from trainchart.secret_files import FoundSecret, dump_docker_ignore, find_secret, find_secret_content, find_secret_name
from trainchart.secret_names import HARMLESS_NAMES, SECRET_NAMES, TOKEN_NAMES

ROOT = Path(__file__).parents[2]
LETTERS = string.ascii_letters + string.digits
NAMES = """
.env .ENV .env.production .env.local conf/.env .Env.Staging prod.env .envrc key.pem KEY.PEM server.key SERVER.KEY
putty.ppk AuthKey_1.p8 id_rsa id_dsa id_ecdsa id_ed25519 id_ed25519_sk deploy_rsa id_rsa.bak .ssh/config
.gnupg/trustdb.gpg client.ovpn cert.p12 cert.pfx CERT.PFX store.jks debug.keystore vault.kdbx passwords.kdb
http.keytab .netrc _netrc .NETRC .git-credentials .pgpass pgpass.conf .my.cnf .htpasswd .wgetrc sftp-config.json
.vscode/sftp.json .npmrc .pypirc pip.conf pip.ini .cargo/credentials.toml .m2/settings.xml .gradle/gradle.properties
.aws/credentials .aws/config aws/credentials .AWS/credentials credentials.json credentials.csv rootkey.csv
my_accessKeys.csv application_default_credentials.json .config/gcloud/access_tokens.db client_secret_42.json
service-account.json service_account-prod.json .s3cfg .boto rclone.conf .config/rclone/rclone.conf .azure/x
.oci/config .databrickscfg kubeconfig .kube/config prod.kubeconfig kubeconfig.yaml .docker/config.json .dockercfg
.dockerconfigjson kaggle.json .kaggle/kaggle.json Kaggle.json .huggingface/token .cache/huggingface/token
huggingface/stored_tokens wandb/settings .config/wandb/settings .comet.config clearml.conf terraform.tfstate
terraform.tfstate.backup prod.tfvars .terraformrc secrets.yaml secrets.yml secret.yaml Secrets.YAML secrets.json
secrets.toml .streamlit/secrets.toml .secrets .vault-token .vault_pass .vault_pass.txt password.txt .bash_history
.python_history .config/gh/hosts.yml .dvc/config.local .dvc/tmp/gdrive-user-credentials.json .modal.toml .ngc/config
.lightning/credentials.json .runpod/config.toml .paperspace/config.json .lambda_cloud/lambda_keys vastai/vast_api_key
.roboflow/roboflow/config.json .cdsapirc .prefect/profiles.toml .metaflowconfig/config.json .codex/auth.json
.claude/.credentials.json .aws-vault/keys/x .saml2aws openstack/clouds.yaml .databricks/token-cache.json
.git-credential-cache/x .subversion/auth/svn.simple/x keyrings/login.keyring .composer/auth.json
helm/registry/config.json .env-prod .env_prod .ipython/profile_default/history.sqlite
"""
COPIES = """
.netrc~|.netrc.bak|.netrc.save|.netrc.swp|..netrc.swp|.pgpass.bak|.pgpass~|id_rsa (1)|id_rsa~|id_rsa copy|id_rsa.1
.env~|.env.old|.env.swp|.env.save|.env (copy)|.env - Copy|Copy of .env|Copy of credentials.json|#.env#|prod.env.bak
credentials.json.orig|credentials.json~|credentials (1).json|credentials copy.json|credentials - Copy (2).json
.~lock.credentials.csv#|~$credentials.json|kaggle.json.1|kaggle.json.~1~|.kaggle.json.swp|.id_rsa.swo|kaggle copy 2.json
Kaggle (1).JSON|server.key.bak|.pypirc.rpmsave|.s3cfg.bak|.s3cfg.bak.1
.ssh.bak/id|.ssh (1)/config|.aws~/config|.docker.old/config.json|.kube_backup/config|secrets.yaml.bak
secrets (1).yaml|pgpass (1).conf|rclone.conf.disabled|.kaggle/kaggle.json.gz|.netrc.zip|.ssh.tar.gz
terraform (1).tfstate|.bash_history.bak
"""
MORE_COPIES = """
server.key-old|key.pem.2026-11-29|key.pem.20261129|key.pem.gz|credentials-old.json|kaggle_backup.json|secrets.bak.yaml
wandb (1)/settings|deploy_rsa.1|.env.bak.1~|kubeconfig (1)
"""
HARMLESS_COPIES = """
environment.yaml|environment.yaml.bak|.env.example~|.env.example.bak|.env.sample.orig|id_rsa.pub.bak|id_rsa.pub (1)
secrets.py~|train (1).py|notes copy.txt|model.keras.bak|config (1).json|data.csv.gz|Copy of README.md|.env-example
.env_sample|.env-template|docker.bak/config.json|checkpoint-1000|data (1)/x.csv|#train.py#
"""
OTHER_NAMES = """
train.py env.py environment.yaml keys.py data/monkey ssh/readme config.json model/config.json tokenizer.json
tokenizer_config.json special_tokens_map.json tokens.txt vocab.txt secrets.py kubeconfig.py wandb/run.log .env.example
.env.sample .env.template id_rsa.pub docker/config.json settings.yaml package.json requirements.txt
huggingface/model.safetensors gcloud/deploy.sh aws/upload.sh history.csv passwords.md credentials.md model.keras
"""


@pytest.mark.parametrize("path", NAMES.split())
def test_files_that_hold_secrets_are_known_by_name(path: str) -> None:
    assert find_secret_name(path)
    assert find_secret_name(f"a/b/{path}")
    assert find_secret(path, b"") == FoundSecret(find_secret_name(path))


@pytest.mark.parametrize(
    "path",
    OTHER_NAMES.split(),
)
def test_other_names_say_nothing(path: str) -> None:
    assert not find_secret_name(path)
    assert find_secret(path, b"{}\n") is None


@pytest.mark.parametrize("path", (COPIES.strip() + MORE_COPIES.rstrip()).replace("\n", "|").split("|"))
def test_copies_and_backups_of_secrets_are_known_by_name(path: str) -> None:
    assert find_secret_name(path)
    assert find_secret_name(f"a/b (1)/{path}")


@pytest.mark.parametrize("path", HARMLESS_COPIES.strip().replace("\n", "|").split("|"))
def test_copies_of_other_files_say_nothing(path: str) -> None:
    assert not find_secret_name(path)


@pytest.mark.parametrize("char", ["~", " (1)", ".bak", "#", " ", ".", "-old", "copy of ", "/", "~/"])
@pytest.mark.timeout(10)
def test_no_name_makes_the_search_for_copies_slow(char: str) -> None:
    find_secret_name(char * 500_000)


BASE64 = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
PEM = f"-----BEGIN PRIVATE KEY-----\n{BASE64}\n{BASE64}\n-----END PRIVATE KEY-----\n"
ACCOUNT = {"type": "service_account", "project_id": "x", "private_key": "-----BEGIN PRIVATE KEY-----\nMIIE\n"}
USER = {"type": "authorized_user", "client_id": "1.apps", "client_secret": "d-" + LETTERS[:20], "refresh_token": "1//0"}
REGISTRY = {"auths": {"a.example.com": {}, "r.example.com": {"auth": "bWU6cGFzc3dvcmQ="}}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "data": {"token": "YWJj"}}


@pytest.mark.parametrize(
    "text",
    [
        PEM,
        PEM.replace("\n", "\r\n"),
        PEM.replace(" PRIVATE", " OPENSSH PRIVATE"),
        PEM.replace(" PRIVATE KEY", " PGP PRIVATE KEY BLOCK").replace("-----\n", "-----\n\n", 1),
        f"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{PEM}",
        PEM.replace("KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n", 1),
        "tls:\n  key: |\n" + "".join(f"    {line}\n" for line in PEM.splitlines()),
        f"KEY = {PEM!r}\n",
        json.dumps({"private_key": PEM}),
        json.dumps(ACCOUNT),
        json.dumps({"kty": "EC", "d": LETTERS[:43]}),
        json.dumps({"keys": [{"kty": "EC", "d": LETTERS[:43]}]}),
        "PuTTY-User-Key-File-3: ssh-ed25519\n",
        f"[Interface]\nPrivateKey = {LETTERS[:43]}=\n",
    ],
)
def test_private_keys_are_known_by_what_they_hold(text: str) -> None:
    for path in ("conf/ca.txt", "x.py", "ca.pem"):
        found = find_secret(path, text.encode())
        assert found is not None
        assert found.title == "a private key"


@pytest.mark.parametrize(
    "text",
    [
        PEM.replace("PRIVATE KEY", "CERTIFICATE"),
        PEM.replace("PRIVATE KEY", "PUBLIC KEY"),
        'MARKER = "-----BEGIN PRIVATE KEY-----"\n',
        'if text.startswith("-----BEGIN PRIVATE KEY-----\\n"):\n    pass\n',
        "It begins with\n-----BEGIN PRIVATE KEY-----\nand ends so.\n",
        json.dumps({**ACCOUNT, "private_key": "fill it in"}),
        json.dumps({**ACCOUNT, "type": "authorized_user"}),
        json.dumps(ACCOUNT)[:-1],
        json.dumps([ACCOUNT["type"], '"auths"']),
        json.dumps({"kty": "EC", "x": LETTERS[:43]}),
        json.dumps({"keys": 1, "auths": [], "installed": 2, "client_secret": ""}),
        PEM + " " * 1024 * 1024,
    ],
)
def test_certificates_and_words_about_keys_are_none(text: str) -> None:
    assert find_secret_content("notes.txt", text.encode()) is None


def test_all_secrets_of_a_file_are_named() -> None:
    token = "ghp_" + LETTERS[:36]
    text = f"a = {token!r}\nb = {token!r}\n\n{PEM}c = 'hf_{'a1' * 17}'\n"
    found = find_secret("conf.py", text.encode())
    assert found is not None
    assert (found.title, found.line) == ("a GitHub token", 1)
    assert found.reason == (
        "holds a GitHub token; line 2: a GitHub token; line 4: a private key; line 8: a Hugging Face token"
    )
    many = find_secret("conf.py", f"a = {token!r}\n".encode() * 30)
    assert many is not None
    assert many.reason.endswith("; line 5: a GitHub token; and 25 more")


def test_certificates_may_be_named_as_keys_are() -> None:
    certificate = PEM.replace("PRIVATE KEY", "CERTIFICATE").encode()
    assert find_secret("ca.pem", certificate) is None
    assert find_secret("ca.pem", certificate + PEM.encode()) == FoundSecret("a private key")
    assert find_secret("ca.pem", b"") == FoundSecret("a private key")
    assert find_secret("ca.key", b"# not a -----BEGIN CERTIFICATE-----\n" + certificate[:9]) is not None


@pytest.mark.parametrize("path", [".env", ".netrc", ".pgpass", ".git-credentials", ".aws/credentials", "kaggle.json"])
def test_a_certificate_makes_no_login_public(path: str) -> None:
    certificate = PEM.replace("PRIVATE KEY", "CERTIFICATE").encode()
    assert find_secret(path, b"PASSWORD=hunter22\n" + certificate) is not None


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("a GitHub token", "ghp_" + LETTERS[:36]),
        ("a GitHub token", "github_pat_" + LETTERS + LETTERS[:20]),
        ("a GitLab token", "glpat-" + LETTERS[:20]),
        ("a Hugging Face token", "hf_" + LETTERS[:34]),
        ("a PyPI token", "pypi-AgEIcHlwaS5vcmc" + LETTERS),
        ("an npm token", "//registry.npmjs.org/:_authToken=" + LETTERS[:36]),
        ("a Slack token", "xoxb-" + LETTERS[:30]),
        ("an OpenAI key", "sk-proj-" + LETTERS[:20] + "T3BlbkFJ" + LETTERS[:20]),
        ("an Anthropic key", "sk-ant-api03-" + LETTERS),
        ("a Google key", "AIza" + LETTERS[:35]),
        ("a Vault token", "hvs." + LETTERS[:24]),
        ("an Azure key", "AccountKey=" + (LETTERS * 2)[:86] + "=="),
        ("a secret key of AWS or another object store", "aws_secret_access_key = " + LETTERS[:40]),
        (
            "a secret key of AWS or another object store",
            "os.environ['AWS_SECRET_ACCESS_KEY']".replace("']", '": "') + LETTERS[:40],
        ),
        ("a secret key of AWS or another object store", "secret_key = " + LETTERS[:40]),
        ("a Weights & Biases key", "export WANDB_API_KEY=" + "0123456789" * 4),
        ("a login", "machine api.wandb.ai\n  login user\n  password " + "0123456789" * 4),
        ("the login of a package index", "index = https://me:" + "secret@pypi.example.com/simple"),
        ("the login of a registry", json.dumps(REGISTRY)),
        ("the login of a cluster", "users:\n- name: me\n  user:\n    client-key-data: " + LETTERS[:40]),
        ("the login of a cluster", "current-context: a\nusers:\n- name: me\n  user: {token: " + LETTERS[:20] + "}"),
        ("the login of a cloud", json.dumps(USER)),
        ("the login of a cloud", json.dumps({"installed": USER})),
        ("a Kubernetes Secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData:\n  token: abc\n"),
        ("a Kubernetes Secret", "apiVersion: v1\ndata: {token: YWJj}\nkind: Secret\n"),
        ("a Kubernetes Secret", json.dumps(SECRET)),
        ("a Kubernetes Secret", json.dumps({"kind": "List", "items": [SECRET]}, indent=2)),
        ("a Kubernetes Secret", "kind: List\nitems:\n- kind: ConfigMap\n- kind: Secret\n  data:\n    token: YWJj\n"),
        ("a token of a machine learning service", json.dumps({"username": "me", "key": "0123456789abcdef" * 2})),
        ("a token", "eyJhbGciOiJSUzI1NiJ9" + ".eyJ" + LETTERS[:40] + "." + LETTERS[:40]),
    ],
)
def test_known_forms_of_secrets_are_found_in_any_file(title: str, text: str) -> None:
    found = find_secret("conf/config.json", f"\n{text}\n".encode())
    assert found is not None
    assert found.title == title
    assert find_secret("notes.txt", f"\n{text}\n".encode("utf-16")) == found


@pytest.mark.parametrize(
    ("title", "source"),
    [
        ("a secret key of AWS or another object store", 'os.environ["AWS_SECRET_ACCESS_KEY"] = "' + LETTERS[:40] + '"'),
        ("a Weights & Biases key", 'os.environ["WANDB_API_KEY"] = "' + "0123456789" * 4 + '"'),
        ("the login of a cluster", 'config = {"client-key-data": "' + LETTERS[:40] + '"}'),
    ],
)
def test_secrets_in_a_notebook_are_found(title: str, source: str) -> None:
    notebook = json.dumps({"cells": [{"cell_type": "code", "source": [source]}]})
    assert find_secret("train.ipynb", notebook.encode()) == FoundSecret(title, 1)


def test_the_line_of_a_secret_is_named_and_the_secret_is_not() -> None:
    token = "hf_" + LETTERS[:34]
    found = find_secret("train.py", f"import os\n\nlogin({token!r})\n".encode())
    assert found == FoundSecret("a Hugging Face token", 3)
    assert token not in str(found)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("config.json", json.dumps({"model_type": "bert", "hidden_size": 768, "pad_token_id": 0})),
        ("config.json", json.dumps({"auths": {"r.example.com": {}}, "credsStore": "desktop"})),
        ("train.py", 'token = os.environ["HF_TOKEN"]; key = "AWS_SECRET_ACCESS_KEY"; x = "hf_transfer"\n'),
        ("README.md", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY\n"),
        ("README.md", "export WANDB_API_KEY=...\nmachine api.wandb.ai login user password KEY\n"),
        ("deploy.yaml", "kind: Secret\ndata:\n  token: {{ .Values.token | b64enc }}\n"),
        ("deploy.yaml", "kind: Secret\nmetadata: {name: x}\n---\nkind: ConfigMap\ndata:\n  mode: fast\n"),
        ("deploy.yaml", "kind: SecretStore\ndata:\n  mode: fast\n"),
        ("deploy.yaml", "kind: Secret\ndata: {}\n"),
        ("deploy.json", json.dumps({"kind": "Secret", "data": {}})),
        ("deploy.yaml", "kind: Application\nignore:\n- kind: Secret\n  name: x\nspec:\n  data:\n    mode: fast\n"),
        ("config.json", json.dumps({"username": "me", "key": "value"})),
        ("token.txt", "the tokens of this model\nare words\n"),
        (".env.example", "HF_TOKEN=\n"),
        (
            "requirements.txt",
            "--extra-index-url https://pypi.example.com/simple\nhttps://${USER}:${PASS}@x.com/simple\n",
        ),
    ],
)
def test_what_training_code_usually_holds_passes(path: str, text: str) -> None:
    assert find_secret(path, text.encode()) is None


@pytest.mark.parametrize(
    "path",
    [
        "token",
        "token.bak",
        "token (1)",
        "db_password~",
        ".token",
        "hub/token.txt",
        "API_KEY",
        "wandb_api_key.txt",
        "db_password",
    ],
)
def test_a_single_word_in_a_file_called_token_is_one(path: str) -> None:
    assert find_secret(path, LETTERS[:20].encode() + b"\n") == FoundSecret("a token", 1)


@pytest.mark.parametrize("start", [b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce", b"\x03\xd9\xa2\x9a"])
def test_stores_of_keys_are_known_by_how_they_begin(start: bytes) -> None:
    found = find_secret("data.bin", start + b"\x00" * 9)
    assert found is not None
    assert found.title.endswith(" store")


def test_patterns_are_in_lower_case_and_listed_once() -> None:
    listed = [pattern for patterns in SECRET_NAMES.values() for pattern in patterns]
    assert len(set(listed)) == len(listed)
    for pattern in (*listed, *HARMLESS_NAMES, *TOKEN_NAMES):
        assert pattern == pattern.lower()
        assert not set(pattern) & set("[]!")


def test_builds_with_docker_alone_leave_the_same_names_out() -> None:
    """Written by: python -c "from trainchart.secret_files import *; print(dump_docker_ignore(), end='')"."""
    text = (ROOT / f"{TRAINING_DOCKERFILE}.dockerignore").read_text()
    assert text == dump_docker_ignore()
    rules = parse_ignore_rules(text)
    for folder in ("", "examples/mnist/"):
        secret = (*NAMES.split(), *COPIES.strip().replace("\n", "|").split("|"))
        assert [name for name in secret if not rules.ignores(folder + name)] == []
        assert [name for name in OTHER_NAMES.split() if rules.ignores(folder + name)] == []
    ours = [path.relative_to(ROOT).as_posix() for path in (ROOT / "training-images").rglob("*")]
    assert [path for path in ours if rules.ignores(path) and "__pycache__" not in path] == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit",
    [
        *(
            "eyJaaaaaaaaaa.",
            "eyJ-",
            "sk-T3BlbkFJ-",
            "machine a ",
            "machine ",
            "-----BEGIN PRIVATE KEY-----\n",
            "kind: Secret\n",
        ),
        *(
            "https://a:b@c",
            "https://a:b@c/simple/ ".replace("/simple/", "x"),
            "current-context users: ",
            "users: ",
            "users: \n token",
            "secret_key=",
            "hf_",
        ),
        *(
            "data:\n #\n",
            "\n",
            "a: ",
            "-----BEGIN PRIVATE KEY-----\na: b\n",
            "xoxb-",
            "_authToken=",
            "github_pat_",
            "---\n",
        ),
    ],
)
def test_no_content_makes_the_search_slow(unit: str) -> None:
    content = (unit * (1024 * 1024 // len(unit)))[: 1024 * 1024 - 99].encode()
    marks = b" T3BlbkFJ eyJ hf_ password /simple current-context Secret PRIVATE _authToken "
    find_secret_content("x", marks + content)


def test_the_login_of_a_cluster_is_looked_for_in_one_pass() -> None:
    began = time.process_time()
    find_secret_content("x", b"current-context " + b"users: " * 149_000)
    assert time.process_time() - began < 2
    assert find_secret_content("x", b"current-context\nusers: users: a\n  token: abcdefghijklmnopq") is not None


def test_a_large_notebook_is_searched():
    cells = [{"source": ["token = 'hf_" + "a1" * 17 + "'"]}, {"outputs": [{"image/png": "A" * 3_000_000}]}]
    notebook = json.dumps({"cells": cells}).encode()
    found = find_secret("Train.IPYNB", notebook)
    assert found is not None and found.title == "a Hugging Face token"
    assert find_secret("train.bin", notebook) is None
