#include "runner/artifact/provenance/secrets.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace runner::artifact {

TEST_CASE("what looks like a secret in a text is hidden, and nothing else of it", "[artifact][secrets]") {
  struct Case {
    const char *text, *shown;
  };
  // `hush` and what has the form of a token are the secrets.
  static constexpr Case cases[] = {
      // addresses
      {"https://api.telegram.org/bot123:AAhush/sendMessage", "https://api.telegram.org/bot(hidden)/sendMessage"},
      {"https://api.telegram.org/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1/x",
       "https://api.telegram.org/bot(hidden)/x"},
      {"postgres://me:hu/sh@host:5432/db", "postgres://me:(hidden)@host:5432/db"},
      {"postgres://me:hu/s@h@host/db?sslmode=require", "postgres://me:(hidden)@host/db?sslmode=require"},
      {"redis://:hu#sh@host/0", "redis://:(hidden)@host/0"},
      {"amqp://me:hu?sh@host/v", "amqp://me:(hidden)@host/v"},
      {"ftp://me:hush@host/a", "ftp://me:(hidden)@host/a"},
      {"https://a.blob.core.windows.net/c?sv=2024&sig=hush%3D&se=2",
       "https://a.blob.core.windows.net/c?sv=2024&sig=(hidden)&se=2"},
      {"https://h/?X-Amz-Signature=hush&n=1", "https://h/?X-Amz-Signature=(hidden)&n=1"},
      {"https://discord.com/api/webhooks/1/hush", "https://discord.com/api/webhooks/(hidden)"},
      // headers, of any scheme
      {"Authorization: Token hush", "Authorization: (hidden)"},
      {"curl -H 'Authorization: Token hush' http://h", "curl -H 'Authorization: (hidden)' http://h"},
      {"Proxy-Authorization: Digest username=\"me\", response=\"hush\"",
       "Proxy-Authorization: (hidden)\"me\", response=\"hush\""},
      {"{\"Authorization\": \"ApiKey hush\"}", "{\"Authorization\": (hidden)}"},
      {"Cookie: a=hush; b=hush", "Cookie: (hidden)"},
      {"X-Api-Key: hush", "X-Api-Key: (hidden)"},
      {"X-Auth-Token: hush", "X-Auth-Token: (hidden)"},
      {"authorization=Bearer hush12", "authorization=(hidden)"},
      // flags and variables of programs
      {"sshpass -p hush ssh host", "sshpass -p (hidden) ssh host"},
      {"sshpass -phush ssh -p 22 host", "sshpass -p(hidden) ssh -p 22 host"},
      {"mysql -u me -phush db", "mysql -u me -p(hidden) db"},
      {"docker login -u me -p hush reg.io", "docker login -u me -p (hidden) reg.io"},
      {"redis-cli -h a -a hush get x", "redis-cli -h a -a (hidden) get x"},
      {"ldapsearch -D cn=a -w hush", "ldapsearch -D cn=a -w (hidden)"},
      {"zip -P hush a.zip b", "zip -P (hidden) a.zip b"},
      {"openssl enc -pass pass:hush", "openssl enc -pass (hidden)"},
      {"tool --password hush --n 1", "tool --password (hidden) --n 1"},
      {"tool --password \"two hush\" --n 1", "tool --password (hidden) --n 1"},
      {"tool --password=hush --n 1", "tool --password=(hidden) --n 1"},
      {"tool --db-pw hush", "tool --db-pw (hidden)"},
      {"PGPASSWORD=hush psql", "PGPASSWORD=(hidden) psql"},
      {"DB_PW=hush DB_PASS=hush ROOT_PWD=hush DBPW=hush x",
       "DB_PW=(hidden) DB_PASS=(hidden) ROOT_PWD=(hidden) DBPW=(hidden) x"},
      {"GPG_PASSPHRASE=hush x", "GPG_PASSPHRASE=(hidden) x"},
      {"curl -u me:hush http://h", "curl -u me:(hidden) http://h"},
      {"http --auth me:hush h", "http --auth me:(hidden) h"},
      // .netrc
      {"machine h login me password hush", "machine h login me password (hidden)"},
      {"machine h\n  login me\n  password hush\n", "machine h\n  login me\n  password (hidden)\n"},
      {"default login me password hush", "default login me password (hidden)"},
      {"password hush", "password (hidden)"},
      // parameters
      {"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=hush==;EndpointSuffix=x",
       "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=(hidden)EndpointSuffix=x"},
      {"//registry.npmjs.org/:_authToken=hush", "//registry.npmjs.org/:_authToken=(hidden)"},
      {"aws_secret_access_key = hush", "aws_secret_access_key = (hidden)"},
      {"clientSecret: hush", "clientSecret: (hidden)"},
      // forms of tokens
      {"hvs.CAESIJabcdefgh", "(hidden)"},
      {"hvb.AAAAAQabcdefgh", "(hidden)"},
      {"s.abcdefghijklmnopqrstuvwx", "(hidden)"},
      {"AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", "(hidden)"},
      {"xapp-1-A0-abcdefgh", "(hidden)"},
      {"xoxb-1234567890-abc", "(hidden)"},
      {"glrt-abcdefghijkl", "(hidden)"},
      {"github_pat_11ABCDEFG", "(hidden)"},
      {"sk-ant-api03-abcdefgh", "(hidden)"},
      {"sk-proj-abcdefghijklmnop", "(hidden)"},
      {"sk-abcdefghijklmnopqrstuvwxyz0123", "(hidden)"},
      {"hf_abcdefghijkl", "(hidden)"},
      {"npm_abcdefghijkl", "(hidden)"},
      {"pypi-AgEIcHlwaS5vcmcCJ", "(hidden)"},
      {"AIzaSyA-abcdefghijklmnopqrstuvwxyz01234", "(hidden)"},
      {"GOCSPX-abcdefghijkl", "(hidden)"},
      {"AKIAIOSFODNN7EXAMPLE", "(hidden)"},
      {"dapi0123456789abcdef0123456789abcdef", "(hidden)"},
      {"glsa_abcdefghijkl", "(hidden)"},
      {"gsk_abcdefghijklmnopqrstuvwxyz", "(hidden)"},
      {"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n-----END OPENSSH PRIVATE KEY-----\nx", "(hidden)\nx"},
      {"-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQ\n-----END PGP PRIVATE KEY BLOCK-----", "(hidden)"},
      {"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\nhush", "(hidden)"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(hide_secrets(c.text) == c.shown);
  }
}

TEST_CASE("a value on a command line is judged by its flag", "[artifact][secrets]") {
  using Words = std::vector<std::string>;
  struct Case {
    Words words, shown;
  };
  const Case cases[] = {
      {{"roux", "run", "r.yaml", "--api-key", "hush"}, {"roux", "run", "r.yaml", "--api-key", "(hidden)"}},
      {{"roux", "--ext", "password=hush"}, {"roux", "--ext", "password=(hidden)"}},
      {{"roux", "--set", "trackers.api_key=hush"}, {"roux", "--set", "trackers.api_key=(hidden)"}},
      {{"roux", "--set", "trackers=[{type: webhook, url: 'https://u:hush@h/x'}]"},
       {"roux", "--set", "trackers=[{type: webhook, url: 'https://u:(hidden)@h/x'}]"}},
      {{"roux", "hf_abcdefghijkl"}, {"roux", "(hidden)"}},
      {{"roux", "--token", "--quiet", "a"}, {"roux", "--token", "--quiet", "a"}},
      {{"roux", "--max-new-tokens", "60", "--tokenizer", "gpt2"},
       {"roux", "--max-new-tokens", "60", "--tokenizer", "gpt2"}},
      {{"roux", "run", "r.yaml", "--set", "training.max_tokens=60", "--new"},
       {"roux", "run", "r.yaml", "--set", "training.max_tokens=60", "--new"}},
  };
  for (const Case& c : cases) CHECK(hide_secrets(c.words) == c.shown);
}

TEST_CASE("ordinary words of a text stay", "[artifact][secrets]") {
  for (const char* text : {
           "http://host:8080/robot/a@b",
           "http://host:8080/path?user=a@b",
           "ssh://git@host:22/a/b@2.git",
           "file:///C:/data/a@b",
           "http://[::1]:8080/a@b",
           "docker run -p 8080:80 image",
           "ssh -p 22 host",
           "mkdir -p /data/runs",
           "roux run r.yaml --set data.train.tokenizer=gpt2 --set training.max_tokens=60",
           "pad_token=<pad> eos_token_id=2 num_tokens: 512",
           "generate --max-new-tokens 60 --tokenizer gpt2",
           "TOKENIZERS_PARALLELISM=false",
           "/opt/sk-learn-contrib:/usr/lib/hf_hub",
           "monkey=1 keyboard=us author=me",
           "the password was changed",
           "machine a is down",
           "compass=north bypass: true passes=3",
           "pypi-server npm_run glpat",
           "hvac.fan s.method",
           "a:b c=d e",
           "/bin:/usr/bin",
           "robots/bot7/x",
           "basic use, bearer of news",
       }) {
    CAPTURE(text);
    CHECK(hide_secrets(text) == text);
  }
}

TEST_CASE("a variable is judged by the words of its name", "[artifact][secrets]") {
  for (const char* name : {"DBPW", "DB_PW", "ROOT_PWD", "MYSQLPWD", "DB_PASS", "PGPASSWORD", "SSH_PASSPHRASE", "GH_PAT",
                           "API_KEY", "apiKey", "SENTRY_DSN", "JWT", "VAULT_TOKEN", "AWS_SECRET_ACCESS_KEY", "A_SAS"}) {
    CAPTURE(name);
    CHECK(sounds_secret(name));
  }
  for (const char* name : {"PWD", "OLDPWD", "PATH", "PATTERN", "TOKENIZERS_PARALLELISM", "PAD_TOKEN", "OMP_NUM_THREADS",
                           "SPAWN", "UPWARDS", "DESIGN", "SASHIMI"}) {
    CAPTURE(name);
    CHECK_FALSE(sounds_secret(name));
  }
}

}  // namespace runner::artifact
