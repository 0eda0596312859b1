// Certificates of hosts that exist only in a test, made by openssl.
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { tempDir } from './temp-dir.ts'

const run = promisify(execFile)
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

/** A certificate with its key, as PEM. */
interface Issued {
  readonly cert: string
  readonly key: string
}

/** Who signs in a test; what it signs is for exactly the given names. */
export interface TestAuthority {
  readonly caFile: string
  readonly ca: string
  /** Signs for a name; fewer than no `days` make a certificate that is over */
  readonly issue: (name: string, options?: { readonly days?: number }) => Promise<Issued>
}

/** Makes an authority in a folder. */
export async function testAuthority(folder: string): Promise<TestAuthority> {
  const { caFile, caKey } = filesIn(folder)
  const self = ['-x509', '-subj', '/CN=test authority', '-days', '2']
  const ends = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign']
  const added = ends.flatMap((end) => ['-addext', end])
  await run('openssl', ['req', ...newKey, ...self, ...added, '-keyout', caKey, '-out', caFile])
  return authorityIn(folder)
}

let common: Promise<Issued> | null = null
const signed = new Map<string, Promise<Issued>>()

/** The one authority of all that ask for it in this process, and what it signed before: for those that need no other. */
export async function commonAuthority(folder: string): Promise<TestAuthority> {
  const { cert, key } = await (common ??= newAuthority().catch((error: unknown) => {
    common = null // the next that asks tries anew
    throw error
  }))
  const { caFile, caKey } = filesIn(folder)
  await writeFile(caFile, cert)
  await writeFile(caKey, key, { mode: 0o600 })
  const authority = await authorityIn(folder)
  return {
    ...authority,
    issue: (name, options = {}) => {
      const asked = JSON.stringify([name, options])
      const known = signed.get(asked)
      if (known !== undefined) return known
      const made = authority.issue(name, options)
      signed.set(asked, made)
      made.catch(() => signed.delete(asked))
      return made
    },
  }
}

const newAuthority = async (): Promise<Issued> => {
  await using folder = await tempDir()
  await testAuthority(folder.path)
  const { caFile, caKey } = filesIn(folder.path)
  return { cert: await readFile(caFile, 'utf8'), key: await readFile(caKey, 'utf8') }
}

const filesIn = (folder: string) => ({
  caFile: `${folder}/upstream-ca.pem`,
  caKey: `${folder}/upstream-ca.key`,
})

const authorityIn = async (folder: string): Promise<TestAuthority> => {
  const { caFile, caKey } = filesIn(folder)
  return {
    caFile,
    ca: await readFile(caFile, 'utf8'),
    issue: async (name, { days = 1 } = {}) => {
      const path = `${folder}/${name}-${days}`
      const names = ['-subj', '/CN=test host', '-addext', `subjectAltName=DNS:${name}`]
      await run('openssl', ['req', ...newKey, ...names, '-keyout', `${path}.key`, '-out', `${path}.csr`])
      const signer = ['-CA', caFile, '-CAkey', caKey, '-CAcreateserial', '-copy_extensions', 'copy']
      const files = ['-in', `${path}.csr`, '-out', `${path}.pem`]
      await run('openssl', ['x509', '-req', ...signer, ...files, '-days', String(days)])
      return { cert: await readFile(`${path}.pem`, 'utf8'), key: await readFile(`${path}.key`, 'utf8') }
    },
  }
}
