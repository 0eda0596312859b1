import { test } from 'vitest'
import { openTestServers } from './support/egress-servers.ts'
import { tryInside } from './support/egress.ts'
import { dirname } from 'node:path'
test('measure', async () => {
  const servers = await openTestServers()
  const t = '/t',
    ca = '/trusted/ca.pem'
  const node = '"$(readlink /proc/$PPID/exe)"'
  const cmds = [
    `${t}/dial evil.example.test 80`,
    `${t}/dial-musl evil.example.test 80`,
    `${t}/gget https://evil.example.test/`,
    `${t}/gget https://api.example.test/`,
    `${t}/gget https://a.wild.example.test/`,
    `${t}/gget https://192.0.2.1/`,
    `${t}/gget http://api.example.test:8080/`,
    `${t}/dial-musl api.example.test 80 | tail -1`,
    `/usr/bin/python3 -c 'import socket; socket.getaddrinfo("evil.example.test", 80)' 2>&1 | tail -1`,
    `${node} -e 'require("dns").lookup("evil.example.test", (e) => console.log(String(e)))'`,
    `${node} -e 'require("dns").resolve4("evil.example.test", (e) => console.log(String(e)))'`,
    `${node} -e 'fetch("https://evil.example.test/").catch((e) => console.log(String(e.cause)))'`,
    `curl -sS https://evil.example.test/`,
    `git ls-remote https://evil.example.test/x.git`,
  ]
  for (const d of ['root', 'user'] as const) {
    const out = await tryInside(d, {
      script:
        `export SSL_CERT_FILE=${ca}; now() { date +%s%N; }\n` +
        cmds
          .map(
            (c) =>
              `f=$(now); ${c} 2>&1; echo "  $((($(now) - f) / 1000000)) ms   [${c.replaceAll(/['"$`\\]/g, '').slice(0, 60)}]"`,
          )
          .join('\n'),
      names: {
        'api.example.test:443': servers.https,
        'api.example.test:80': servers.http,
        '*.wild.example.test:443': servers.https,
      },
      mounts: { [servers.trusted]: dirname(ca), '/tmp/e4in-tools': t },
    })
    console.log(d, out.stdout, out.stderr, out.notices.join('\n'))
  }
  await servers[Symbol.asyncDispose]()
}, 120000)
