// Certificates of hosts that exist only in a test, made by openssl.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Makes an authority in a folder; what it signs is for exactly the given names. */
export async function testAuthority(folder: string) {
  const caFile = `${folder}/upstream-ca.pem`
  const caKey = `${folder}/upstream-ca.key`
  await run('openssl', [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-keyout',
    caKey,
    '-out',
    caFile,
    '-subj',
    '/CN=test authority',
    '-days',
    '2',
    '-addext',
    'basicConstraints=critical,CA:TRUE',
    '-addext',
    'keyUsage=critical,keyCertSign',
  ])

  /** Signs for a name; `from` and `to` as openssl takes them, e.g. 20200101000000Z. */
  const issue = async (name: string, { days = 1 }: { readonly days?: number } = {}) => {
    const path = `${folder}/${name}-${days}`
    await run('openssl', [
      'req',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-subj',
      '/CN=test host',
      '-keyout',
      `${path}.key`,
      '-out',
      `${path}.csr`,
      '-addext',
      `subjectAltName=DNS:${name}`,
    ])
    await run('openssl', [
      'x509',
      '-req',
      '-in',
      `${path}.csr`,
      '-CA',
      caFile,
      '-CAkey',
      caKey,
      '-CAcreateserial',
      '-copy_extensions',
      'copy',
      '-days',
      String(days),
      '-out',
      `${path}.pem`,
    ])
    return { cert: await readFile(`${path}.pem`, 'utf8'), key: await readFile(`${path}.key`, 'utf8') }
  }
  return { caFile, ca: await readFile(caFile, 'utf8'), issue }
}
