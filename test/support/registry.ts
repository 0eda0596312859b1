// A registry of one image, over plain HTTP on loopback: as much of the OCI distribution protocol as a pull takes.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { tempDir } from './temp-dir.ts'

/** A registry that serves `NAME:latest`, and what it was asked. */
export interface Registry extends AsyncDisposable {
  /** `127.0.0.1:PORT`, which engines take without TLS */
  readonly host: string
  readonly digest: string
  readonly requests: readonly string[]
  /** What `latest` leads to from now on */
  push(layers: readonly Layer[]): Promise<string>
}

/** Paths of a layer, and the text that is there. */
type Layer = Readonly<Record<string, string>>

interface Blob {
  readonly type: string
  readonly bytes: Buffer
}

const types = {
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
} as const

/** `login`, as NAME:PASSWORD, is what every request must bring where it is given. */
export const registryOf = async (
  name: string,
  layers: readonly Layer[],
  { login = null }: { readonly login?: string | null } = {},
): Promise<Registry> => {
  const blobs = new Map<string, Blob>()
  const requests: string[] = []
  let latest = ''
  const keep = (type: string, bytes: Buffer): { mediaType: string; size: number; digest: string } => {
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
    blobs.set(digest, { type, bytes })
    return { mediaType: type, size: bytes.length, digest }
  }
  const push = async (pushed: readonly Layer[]): Promise<string> => {
    const tars = await Promise.all(pushed.map(tarOf))
    const diffs = tars.map((tar) => `sha256:${createHash('sha256').update(tar).digest('hex')}`)
    const config = {
      architecture: process.arch === 'x64' ? 'amd64' : 'arm64',
      os: 'linux',
      config: { Cmd: ['/bin/none'] },
      rootfs: { type: 'layers', diff_ids: diffs },
      history: diffs.map(() => ({ created_by: 'a test' })),
    }
    const manifest = {
      schemaVersion: 2,
      mediaType: types.manifest,
      config: keep(types.config, Buffer.from(JSON.stringify(config))),
      layers: tars.map((tar) => keep(types.layer, gzipSync(tar))),
    }
    latest = keep(types.manifest, Buffer.from(JSON.stringify(manifest))).digest
    return latest
  }
  await push(layers)
  const wanted = login === null ? null : `Basic ${Buffer.from(login).toString('base64')}`
  const server = createServer(({ url = '', method = '', headers }, response) => {
    if (wanted !== null && headers.authorization !== wanted)
      return response.writeHead(401, { 'www-authenticate': 'Basic realm="a test"' }).end('{"errors":[]}')
    requests.push(`${method} ${url}`)
    const [, asked] = new RegExp(`^/v2/${name}/(?:manifests|blobs)/([^/]+)$`).exec(url) ?? []
    const digest = asked === 'latest' ? latest : asked
    const blob = digest === undefined ? undefined : blobs.get(digest)
    if (url === '/v2/') return response.end('{}')
    if (blob === undefined)
      return response.writeHead(404, { 'content-type': 'application/json' }).end('{"errors":[]}')
    response.writeHead(200, {
      'content-type': blob.type,
      'content-length': blob.bytes.length,
      'docker-content-digest': digest,
    })
    return response.end(method === 'HEAD' ? undefined : blob.bytes)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    get digest() {
      return latest
    },
    requests,
    push,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const tarOf = async (layer: Layer): Promise<Buffer> => {
  await using stage = await tempDir()
  for (const [path, text] of Object.entries(layer)) {
    await mkdir(join(stage.path, path, '..'), { recursive: true })
    await writeFile(join(stage.path, path), text, { mode: 0o755 })
  }
  const made = promisify(execFile)('tar', ['-C', stage.path, '--owner=0', '--group=0', '-cf', '-', '.'], {
    encoding: 'buffer',
    maxBuffer: 1 << 26,
  })
  return (await made).stdout
}
