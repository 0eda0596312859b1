// Files of several scopes laid over one another: on the same name the higher one wins, and it is said.
import { resolve } from 'node:path'
import type { CredentialSource } from '../schema/credentials.ts'
import type { AllowedCommand, Rule } from '../schema/settings.ts'
import type { Config } from '../schema/types.gen.ts'
import { inMemory } from './document.ts'
import { sourcesOf } from './injection.ts'
import { makeLayer, type Layer } from './layer.ts'
import { rulesOf } from './rules.ts'

export interface PlacedServer {
  readonly name: string
  readonly entry: Config['servers'][string]
  /** The file that declares it */
  readonly layer: Layer
}

export interface Overlay {
  readonly config: Omit<Config, 'allowed_commands' | 'credentials' | 'servers' | 'rules'>
  readonly allowedCommands: readonly AllowedCommand[]
  readonly credentials: Readonly<Record<string, CredentialSource>>
  readonly servers: readonly PlacedServer[]
  /** Highest scope first, so that its word is the first match */
  readonly rules: readonly Rule[]
  /** One line for each thing of a lower scope that a higher one decides */
  readonly warnings: readonly string[]
}

/** Lays layers over one another, highest first. A top-level key is whole: the highest file that states it decides it. */
export function overlay(layers: readonly Layer[]): Overlay {
  const warnings: string[] = []
  const deciding = (key: keyof Config): Layer => {
    const [winner, ...losers] = layers.filter(({ stated }) => stated.has(key))
    if (winner === undefined) return fallback()
    for (const { document } of losers)
      warnings.push(`${key} is decided by ${winner.document.path}; ${document.path} has no say in it`)
    return winner
  }
  const single = <K extends keyof Config>(key: K): Config[K] => deciding(key).config[key]
  const commands = deciding('allowed_commands')
  return {
    config: {
      $schema: '',
      version: 1,
      exclusive: layers.some(({ config }) => config.exclusive),
      command_path: single('command_path'),
      interpreter_options: single('interpreter_options'),
      max_dynamic_servers: single('max_dynamic_servers'),
      startup: single('startup'),
      pool: single('pool'),
      dynamic: single('dynamic'),
      require_separation: single('require_separation'),
      host_group: single('host_group'),
      mode: single('mode'),
      driver: single('driver'),
      approval: single('approval'),
      permit: single('permit'),
      trust: single('trust'),
      tools: single('tools'),
      journal: single('journal'),
    },
    allowedCommands: commands.config.allowed_commands.map((entry) => allowedCommand(entry, commands)),
    credentials: sourcesOf(deciding('credentials')),
    servers: placeServers(layers, warnings),
    rules: layers.flatMap(rulesOf),
    warnings,
  }
}

function placeServers(layers: readonly Layer[], warnings: string[]): readonly PlacedServer[] {
  const placed = new Map<string, PlacedServer>()
  for (const layer of layers) {
    for (const [name, entry] of Object.entries(layer.config.servers)) {
      const higher = placed.get(name)
      if (higher === undefined) placed.set(name, { name, entry, layer })
      else
        warnings.push(
          `server ${name} is the one of ${higher.layer.document.path}; that of ${layer.document.path} is not used`,
        )
    }
  }
  return [...placed.values()]
}

function allowedCommand(entry: Config['allowed_commands'][number], { directory }: Layer): AllowedCommand {
  if (typeof entry === 'string') return { name: entry, path: null, interpreter: null }
  const { name, path, interpreter } = entry
  return { name, path: path === null ? null : resolve(directory, path), interpreter }
}

/** Where no file states a key, the schema's default decides. */
const fallback = (): Layer => makeLayer('file', inMemory('the defaults', { version: 1 }), '/')
