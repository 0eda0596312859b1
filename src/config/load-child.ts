// The process of `loadSettingsApart`: reads once, says what came of it, ends.
import { serialize } from 'node:v8'
import { SallyportError } from '../errors.ts'
import { build } from '../lib/build.ts'
import { parseJson } from '../lib/parse-json.ts'
import { thisHost } from './host.ts'
import { lengthBytes, type Said } from './load-apart.ts'
import { loadSettings, type LoadOptions } from './load.ts'

// A daemon that was killed hears nothing, a moment before this process ends with it.
process.stdout.on('error', () => process.exit())

const [, , given = ''] = process.argv
const { env } = thisHost()
const said: Said = { build, loaded: await load({ ...(parseJson(given) as Omit<LoadOptions, 'env'>), env }) }
const bytes = serialize(said)
const length = Buffer.alloc(lengthBytes)
length.writeUInt32LE(bytes.length)
process.stdout.write(Buffer.concat([length, bytes]))

async function load(options: LoadOptions): Promise<Said['loaded']> {
  try {
    return { settings: await loadSettings(options) }
  } catch (error) {
    const refusal = SallyportError.from(error)
    if (refusal.code === 'ERR_INTERNAL' && error instanceof Error)
      process.stderr.write(`${error.stack ?? ''}\n`)
    return { refused: refusal.toRpc() }
  }
}
