// What is accepted stands in the journal as it was listed, so nothing with a credential's value in it is accepted.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { actor } from '../../../src/daemon/governance/actor.ts'
import { redactor } from '../../../src/daemon/redactor.ts'
import { governed } from '../../support/governance.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { caller } from '../../support/supervisor.ts'
import { tempDir } from '../../support/temp-dir.ts'

const operator = actor(caller(0, 'operator'))
const server = { ...serverSettings('echo.mjs'), name: 'postgres' }

test('nothing with the value of a credential is accepted, and nothing of it is written', async () => {
  await using dir = await tempDir()
  const valueIn = (value: unknown) =>
    JSON.stringify(value).includes('hunter2-hunter2') ? 'the value of the credential pw' : null
  const tools = new Map(
    [
      ['plain', 'x'],
      ['leaks', 'hunter2-hunter2'],
    ].map(([name = '', said]) => [
      name,
      { name, inputSchema: { type: 'object', properties: { a: { const: said } } } },
    ]),
  )
  tools.set('hunter2-hunter2', { name: 'hunter2-hunter2', inputSchema: {} } as never)
  await using at = await governed({
    servers: [server],
    rules: [],
    emit: () => undefined,
    state: dir.path,
    redactor: { ...redactor, valueIn },
  })
  const observed = { server, tools, saidVersion: 'hunter2-hunter2', rest: {} }
  const { surfaces, ledger } = at.governance
  await surfaces.accept(observed, { ...operator, declared: null, declaredVersion: null, only: null })
  expect(ledger.accepted('postgres')).toMatchObject({ leftOut: ['leaks'], saidVersion: '[redacted]' })
  expect([...(ledger.accepted('postgres')?.tools.keys() ?? [])]).toEqual(['plain'])
  await expect(
    surfaces.accept(observed, { ...operator, declared: null, declaredVersion: null, only: ['leaks'] }),
  ).rejects.toMatchObject({
    code: 'ERR_DECLARATION_MISMATCH',
    message: expect.stringContaining('it holds the value of the credential pw') as string,
  })
  await surfaces.observe({ ...observed, instance: 'i-1' as never })
  expect(ledger.standing('postgres', 'i-1' as never, 'tool', 'leaks')).toMatchObject({
    state: 'unaccepted',
    reason: expect.stringContaining('it holds the value of the credential pw') as string,
  })
  expect(readFileSync(join(at.directory, '00000001.jsonl'), 'utf8')).not.toContain('hunter2')
})
