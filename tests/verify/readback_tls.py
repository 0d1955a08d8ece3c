"""Trackers that speak HTTP, over TLS: certificates of an authority of one's own, expired ones, those of another host, and
those that a client has to show; a name and password, and a token. A real MLflow server and a real Aim server stand behind.

usage: readback_tls.py SOURCE_DIR ROUX
"""

import base64
import contextlib
import datetime
import http.client
import http.server
import ipaddress
import os
import pathlib
import ssl
import subprocess
import tempfile
import threading

from lib.libraries import with_libraries
from lib.tracked import TrackedRun, arguments, read_back


class Authority:
    """Signs certificates; each file has the key with it."""

    def __init__(self, folder, name):
        from cryptography.hazmat.primitives.asymmetric import ec
        self.folder, self.name = folder, name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.path = self.write(name, self.key, self.signed(name, self.key.public_key(), is_authority=True))

    def write(self, name, key, certificate, with_key=False):
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
        path = self.folder / f"{name}.pem"
        path.write_bytes(certificate.public_bytes(Encoding.PEM) + (
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) if with_key else b""))
        return path

    def signed(self, name, public_key, hosts=(), days=1, is_authority=False):
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA256
        now = datetime.datetime.now(datetime.timezone.utc)

        def called(text):
            return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

        names = [x509.IPAddress(ipaddress.ip_address(host)) if host[0].isdigit() else x509.DNSName(host) for host in hosts]
        made = (x509.CertificateBuilder().subject_name(called(name)).issuer_name(called(self.name)).public_key(public_key)
                .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=9))
                .not_valid_after(now + datetime.timedelta(days=days))
                .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
                .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
                .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False))
        if names:
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return made.sign(self.key, SHA256())

    def certificate(self, name, hosts=(), days=1, with_key=True):
        from cryptography.hazmat.primitives.asymmetric import ec
        key = ec.generate_private_key(ec.SECP256R1())
        return self.write(name, key, self.signed(name, key.public_key(), hosts, days), with_key)


@contextlib.contextmanager
def relay(certificate, upstream=None, clients_from=None, credentials=None):
    """A server with TLS on the loopback: hands on to `upstream`, or answers 200 itself. `clients_from`: the authority of
    the certificates that it wants to be shown; `credentials`: the only Authorization that it takes."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, kind, answer = 200, "application/json", b"{}"
            shown = self.headers.get("Authorization", "").encode("latin-1").decode()
            if credentials is not None and shown != credentials:
                status, answer = 401, b"who are you?"
            elif upstream is not None:
                connection = http.client.HTTPConnection(upstream.split("//")[1], timeout=60)
                kept = {name: self.headers[name] for name in ("Content-Type",) if name in self.headers}
                connection.request(self.command, self.path, body, kept)
                reply = connection.getresponse()
                status, kind, answer = reply.status, reply.headers.get("Content-Type", "text/plain"), reply.read()
                connection.close()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_PATCH = handle_any

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_):
            pass  # a client that does not trust it leaves

    server = Server(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        if clients_from is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients_from.path)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class World:
    def __init__(self, roux, folder):
        self.roux, self.folder, self.runs = roux, pathlib.Path(folder), 0
        self.own, self.other = Authority(self.folder, "own"), Authority(self.folder, "other")
        self.server = self.own.certificate("server", ["127.0.0.1"])

    def run(self, block, environment=None):
        self.runs += 1
        place = self.folder / str(self.runs)
        place.mkdir()
        run = TrackedRun(self.roux, place, [block], {**os.environ, **(environment or {})})
        run.log(1, {"loss": 0.5})
        run.finish()
        return run

    def expect(self, block, *words, environment=None):
        """It arrives where no words are given, else these are said."""
        run = self.run(block, environment)
        done = subprocess.run([self.roux, "sync", run.path], capture_output=True, text=True, env=run.environment)
        assert done.returncode == (1 if words else 0), (block, environment, done.stdout, done.stderr)
        for word in words:
            assert word in done.stderr, (block, environment, word, done.stderr)
        return run


def check_certificates(world):
    def webhook(url, **more):
        return {"type": "webhook", "url": url, **{key: str(value) for key, value in more.items()}}

    with relay(world.server) as url:
        world.expect(webhook(url), "certificate", "set server_cert_path to the certificates")
        world.expect(webhook(url, server_cert_path=world.own.path))
        world.expect({"type": "webhook", "url": url, "insecure_tls": True})
        world.expect(webhook(url, server_cert_path=world.other.path), "set server_cert_path to the certificates")
        no_pem = world.folder / "no.pem"
        no_pem.write_text("nothing")
        for path in (no_pem, world.folder / "missing.pem"):
            world.expect(webhook(url, server_cert_path=path), "server_cert_path must be a file of certificates (PEM)")
        world.expect({"type": "aim", "repo": url}, "set server_cert_path to the certificates")
        world.expect({"type": "aim", "repo": url, "server_cert_path": str(world.own.path)}, "is not an Aim server")
        world.expect({"type": "mlflow", "tracking_uri": url}, "set server_cert_path to the certificates")
    with relay(world.own.certificate("expired", ["127.0.0.1"], days=-1)) as url:
        world.expect(webhook(url, server_cert_path=world.own.path), "expired", "its certificate must be renewed")
    with relay(world.own.certificate("elsewhere", ["example.org"])) as url:
        world.expect(webhook(url, server_cert_path=world.own.path), "use the host name of its certificate")
    with relay(world.server, clients_from=world.own) as url:
        def shown(path):
            return webhook(url, server_cert_path=world.own.path, **({"client_cert_path": path} if path else {}))

        world.expect(shown(None), "set client_cert_path")
        world.expect(shown(world.own.certificate("client")))
        world.expect(shown(world.other.certificate("stranger")), "set client_cert_path")
        world.expect(shown(world.own.certificate("no_key", with_key=False)), "client_cert_path must be a file")
    with relay(None) as url:
        world.expect(webhook(url), "check that this port uses TLS")


def check_mlflow(world, source):
    from readback_mlflow import mlflow_server
    own = {"MLFLOW_TRACKING_SERVER_CERT_PATH": str(world.own.path)}
    client = {"MLFLOW_TRACKING_CLIENT_CERT_PATH": str(world.own.certificate("mlflow_client"))}
    password = {"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "söcret:x"}
    basic = "Basic " + base64.b64encode("me:söcret:x".encode()).decode()
    runs = 0
    with mlflow_server(world.folder) as upstream:
        def arrives(url, environment, *words):
            nonlocal runs
            runs += not words
            world.expect("mlflow", *words, environment={**environment, "MLFLOW_TRACKING_URI": url})

        with relay(world.server, upstream, clients_from=world.own) as url:
            arrives(url, {**own, **client})
            arrives(url, own, "set client_cert_path")
        with relay(world.server, upstream, credentials=basic) as url:
            arrives(url, {**own, **password})
            arrives(url, {**password, "MLFLOW_TRACKING_INSECURE_TLS": "true"})
            arrives(url, own, "401", "use other credentials")
        with relay(world.server, upstream, credentials="Bearer tökén") as url:
            arrives(url, {**own, **password, "MLFLOW_TRACKING_TOKEN": "tökén"})
            arrives(url, {**own, "MLFLOW_TRACKING_TOKEN": "other"}, "401", "use other credentials")
        found = read_back(source, "mlflow", upstream)
        assert len(found) == runs and all(run["history"]["loss"][0][:2] == [1, 0.5] for run in found), found
    return runs


def check_aim(world, source):
    from readback_aim import aim_server
    with aim_server(world.folder) as upstream, relay(world.server, upstream) as url:
        world.expect({"type": "aim", "repo": url, "server_cert_path": str(world.own.path)})
    (found,) = read_back(source, "aim", world.folder)
    assert [metric["name"] for metric in found["metrics"]] == ["loss"], found


def main():
    with_libraries()
    os.environ["no_proxy"] = "127.0.0.1"
    source, roux = arguments()
    with tempfile.TemporaryDirectory() as folder:
        world = World(roux, folder)
        check_certificates(world)
        runs = check_mlflow(world, source)
        check_aim(world, source)
    print(f"{world.runs} runs over TLS: {runs} on an MLflow server, one on an Aim server, and what is wrong with a certificate is said")


main()
