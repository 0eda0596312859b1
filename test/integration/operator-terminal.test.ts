// The operator at a terminal: questions are put and answered there, and every verb says what it did by its words and its status.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import type { ExplainedCall } from '../../src/rpc/governed.ts'
import { configOf, daemon, fixture, main } from '../support/daemon.ts'
import type { TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { handled } from '../support/handled.ts'

const rules = [
  { permission: 'mcp:plain:fail', action: 'deny' },
  { permission: 'mcp:asked:*', action: 'ask' },
  { permission: 'mcp:*:*', action: 'allow' },
]

let at: TestDaemon
let host: Client
beforeAll(async () => {
  const collides = (...names: readonly string[]) =>
    fixture('collides', { args: ['/app/collides.mjs', ...names] })
  at = await daemon(
    configOf(
      {
        plain: fixture('echo'),
        asked: fixture('echo'),
        manual: fixture('echo', { acceptance: 'manual' }),
        a: collides('b_c', 'only'),
        a_b: collides('c'),
      },
      { rules },
    ),
  )
  host = await at.connect('host')
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
})

const call = (server: string, args: Record<string, unknown> = {}, tool = 'echo') =>
  host.call('tools/call', { server, tool, arguments: args })
const outcomeOf = (made: Promise<unknown>): Promise<string> =>
  made.then(
    () => 'done',
    (error: { code: string }) => error.code,
  )

/** A person at a pseudo-terminal, which is wide unless said otherwise. */
function terminal(...args: readonly string[]) {
  return terminalOf(300, ...args)
}

function terminalOf(columns: number, ...args: readonly string[]) {
  const quoted = [process.execPath, main, ...args].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qec', `stty cols ${columns}; ${quoted}`, '/dev/null'], {
    env: { ...at.env, TERM: 'xterm' },
    cwd: at.folder,
  })
  const ended = once(child, 'exit')
  child.stdin.on('error', () => undefined) // a command that ended by itself takes no more keys
  let screen = ''
  let from = 0
  child.stdout.on('data', (chunk: Buffer) => (screen += chunk.toString()))
  return {
    screen: () => screen,
    types: (text: string) => child.stdin.write(text),
    /** Of the command, once it has ended */
    status: ended.then(([status]: unknown[]) => status),
    /** Waits for words that came after those that were waited for before. */
    async shows(text: string | RegExp): Promise<void> {
      const { found } = await eventually(() => {
        const place =
          typeof text === 'string' ? screen.indexOf(text, from) - from : screen.slice(from).search(text)
        return place >= 0 && { found: place }
      })
      from += found + 1
    },
    async [Symbol.asyncDispose]() {
      child.stdin.write('\u0003')
      await ended
    },
  }
}
/** A shell with job control at a pseudo-terminal; where it lives the terminal does. */
async function interactive() {
  const shell = spawn('script', ['-qec', 'bash --norc --noediting -i', '/dev/null'], {
    env: { ...at.env, TERM: 'xterm', PS1: 'ready> ', NO_COLOR: '1' },
    cwd: at.folder,
  })
  const ended = once(shell, 'exit')
  let screen = ''
  shell.stdout.on('data', (chunk: Buffer) => (screen += chunk.toString()))
  const types = (typed: string) => shell.stdin.write(typed)
  const shows = (text: string) => eventually(() => screen.includes(text))
  await shows('ready> ')
  return {
    types,
    shows,
    /** Types, and waits for words that come after that. */
    async does(typed: string, text: string): Promise<void> {
      screen = ''
      types(typed)
      await shows(text)
    },
    /** The command that it runs */
    job: () => lastOf(shell.pid ?? 0),
    async [Symbol.asyncDispose]() {
      types('exit\n')
      await ended
    },
  }
}
function lastOf(pid: number): number {
  const child = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return child === '' ? pid : lastOf(Number(child))
}
const watchCommand = `'${process.execPath}' '${main}' approvals --watch\n`

const watchers = (count: number) =>
  eventually(async () => (await at.client.call('approvals/list', {})).listeners === count)

describe('approvals --watch at a terminal', () => {
  test('puts each question, takes an answer for what it is, and asks again for what is none', async () => {
    await watchers(0)
    await using person = terminal('approvals', '--watch')
    await person.shows('waiting for questions')
    await person.shows(
      'y once, s again in this session, p in any, n no, f all of the arguments, each with enter; enter alone later',
    )
    expect((await at.client.call('approvals/list', {})).listeners).toBe(1) // not a moment later
    const answers: readonly (readonly [string, string])[] = [
      ['y', 'done'],
      ['n', 'ERR_APPROVAL_DENIED'],
      ['s', 'done'],
      ['p', 'done'],
    ]
    for (const [key, outcome] of answers) {
      const made = outcomeOf(call('asked', { key, evil: '\u001b[2J\u202e' }))
      await person.shows(`"key":"${key}"`)
      await person.shows('asks for mcp:asked:*; s and p hold for 15 min')
      await person.shows('y/n/s/p? ')
      person.types('what\n')
      await person.shows('y/n/s/p? ')
      person.types(`${key.toUpperCase()}\n`)
      expect(await made, key).toBe(outcome)
      await person.shows(outcome === 'done' ? /granted by uid \d+/ : /not granted by uid \d+/)
    }
    // What stands is not asked again.
    expect(await outcomeOf(call('asked', { key: 'p', evil: '\u001b[2J\u202e' }))).toBe('done')
    expect(person.screen()).not.toContain('\u001b[2J')
    expect(person.screen()).not.toContain('\u202e')
    expect(person.screen()).toContain('\\u001b[2J\\u202e')
  })

  test('leaves a question that somebody else answers, and puts the next to who knows that it is another', async () => {
    await watchers(0)
    await using person = terminal('approvals', '--watch')
    await person.shows('waiting for questions')
    await watchers(1)
    const first = outcomeOf(call('asked', { n: 'first' }))
    await person.shows('y/n/s/p? ')
    const second = outcomeOf(call('asked', { n: 'second' }))
    const { pending } = await eventually(async () => {
      const list = await at.client.call('approvals/list', {})
      return list.pending.length === 2 && list
    })
    const id = pending.find(({ text }) => text.includes('first'))?.id ?? ''
    expect((await at.run(['approve', id])).status).toBe(0)
    expect(await first).toBe('done')
    await person.shows('"n":"second"')
    await person.shows('the one before is over; enter to answer this one: ')
    // What was on its way to the first is no answer to the second.
    person.types('y\n')
    await person.shows('y/n/s/p? ')
    person.types('n\n')
    expect(await second).toBe('ERR_APPROVAL_DENIED')
  })

  test('takes no answer that was typed before its question, or in one go with the answer to another', async () => {
    await watchers(0)
    const { standing } = await at.client.call('approvals/list', {})
    await using person = terminal('approvals', '--watch')
    person.types('y\n') // before anything reads them
    await person.shows('waiting for questions')
    person.types('y\np\n')
    await delay(200) // they have come, and nothing on the screen tells
    const first = outcomeOf(call('asked', { unseen: 1 }))
    await person.shows('"unseen":1')
    person.types('y\n') // sooner than anybody reads
    await person.shows('y/n/s/p? ')
    const second = outcomeOf(call('asked', { unseen: 2 }))
    await eventually(async () => (await at.client.call('approvals/list', {})).pending.length === 2)
    person.types('n\ny\n')
    expect(await first).toBe('ERR_APPROVAL_DENIED')
    await person.shows('"unseen":2')
    await person.shows('y/n/s/p? ')
    person.types('n\n')
    expect(await second).toBe('ERR_APPROVAL_DENIED')
    expect((await at.client.call('approvals/list', {})).standing).toHaveLength(standing.length)
  })

  test('nor the end of a word that was begun before', async () => {
    await watchers(0)
    await using person = terminal('approvals', '--watch')
    await person.shows('waiting for questions')
    person.types('ye')
    await delay(200)
    const made = outcomeOf(call('asked', { word: 1 }))
    await person.shows('y/n/s/p? ')
    person.types('p\n')
    await person.shows('that was begun before there was a prompt, and is no answer')
    await person.shows('y/n/s/p? ')
    person.types('n\n')
    expect(await made).toBe('ERR_APPROVAL_DENIED')
  })

  test('nor what is typed after a Ctrl-Z that nothing stops for', async () => {
    await watchers(0)
    await using person = terminal('approvals', '--watch') // without a shell that could go on with it
    await person.shows('waiting for questions')
    person.types('\u001a')
    await delay(200)
    person.types('y')
    await delay(200)
    const made = outcomeOf(call('asked', { orphaned: 1 }))
    await person.shows('y/n/s/p? ')
    person.types('\n')
    await person.shows('that was begun before there was a prompt, and is no answer')
    await person.shows('y/n/s/p? ')
    person.types('\u001a')
    await person.shows('y/n/s/p? ')
    person.types('n\n')
    expect(await made).toBe('ERR_APPROVAL_DENIED')
  })

  test('says at its prompt what was begun before, which can be taken away', async () => {
    await watchers(0)
    await using person = terminal('approvals', '--watch')
    await person.shows('waiting for questions')
    person.types('yes\u007f\u0017no')
    await delay(200)
    const made = outcomeOf(call('asked', { begun: 1 }))
    await person.shows('what stands at this prompt was begun before it: enter or Ctrl-U takes it away')
    await person.shows('y/n/s/p? no')
    person.types('\u0015yn\b\n')
    expect(await made).toBe('done')
  })

  test.each([
    ['Ctrl-L', '\u000c'],
    ['an arrow', '\u001b[A'],
    ['a function key in two parts', '\u001b[1', '5~'],
    ['Escape', '\u001b'],
    ['Backspace', '\u007f'],
    ['a letter that is taken away', 'x\u007f'],
  ])('takes the answer after %s that was pressed before the prompt', async (_, ...keys) => {
    await watchers(0)
    await using person = terminal('approvals', '--watch')
    await person.shows('waiting for questions')
    for (const key of keys) {
      person.types(key)
      await delay(100)
    }
    const made = outcomeOf(call('asked', { stray: keys }))
    await person.shows('y/n/s/p? ')
    person.types('n\n')
    expect(await made).toBe('ERR_APPROVAL_DENIED')
    expect(person.screen()).not.toContain('begun before')
  })

  test.each([
    ['Alt-Enter', 'n\u001b\r'],
    ['Escape and Enter', 'n\u001b', '\r'],
  ])('takes %s for Enter', async (_, ...keys) => {
    await watchers(0)
    await using person = terminal('approvals', '--watch')
    await person.shows('waiting for questions')
    const made = outcomeOf(call('asked', { alt: keys }))
    await person.shows('y/n/s/p? ')
    for (const key of keys) {
      person.types(key)
      await delay(100)
    }
    expect(await made).toBe('ERR_APPROVAL_DENIED')
  })

  test('tells how another question ended above the prompt, and what is typed stands', async () => {
    await watchers(0)
    await using person = terminalOf(30, 'approvals', '--watch')
    await person.shows('waiting for questions')
    await watchers(1)
    const first = outcomeOf(call('asked', { n: 'first' }))
    await person.shows('y/n/s/p? ')
    const second = outcomeOf(call('asked', { n: 'second' }))
    const id = await eventually(async () => {
      const { pending } = await at.client.call('approvals/list', {})
      return pending.find(({ text }) => text.includes('second'))?.id
    })
    person.types(`n${' '.repeat(30)}`) // more than one row
    await person.shows(/n {30}/)
    expect((await at.run(['deny', id])).status).toBe(0)
    await person.shows(
      /\u001b\[1A\u001b\[1G\u001b\[0J\S*a-\S+ not granted by uid \d+: .*\r\n\S*y\/n\/s\/p\? n {30}/,
    )
    person.types('\n')
    expect(await Promise.all([first, second])).toEqual(['ERR_APPROVAL_DENIED', 'ERR_APPROVAL_DENIED'])
  })

  test('gives the terminal back as it was, for as long as it is stopped, too', async () => {
    await watchers(0)
    await using shell = await interactive()
    await shell.does(watchCommand, 'waiting for questions')
    await shell.does('\u001a', 'Stopped')
    await shell.does('stty -a\n', 'isig icanon')
    shell.types('fg\n')
    const made = outcomeOf(call('asked', { stopped: 1 }))
    await shell.shows('y/n/s/p? ')
    shell.types('n\n')
    expect(await made).toBe('ERR_APPROVAL_DENIED')
    await shell.does('\u0003', 'ready> ')
    await shell.does('stty -a\n', 'isig icanon')
  })

  test('takes the terminal again after a stop that it did not see, and puts its prompt anew', async () => {
    await watchers(0)
    await using shell = await interactive()
    await shell.does(watchCommand, 'waiting for questions')
    const made = outcomeOf(call('asked', { stopped: 2 }))
    await shell.shows('y/n/s/p? ')
    await shell.does('y', 'y')
    process.kill(shell.job(), 'SIGTSTP')
    await shell.shows('Stopped')
    await shell.does('fg\ny', 'y/n/s/p? y') // and the last was not typed at it
    shell.types('\n')
    await shell.shows('that was begun before there was a prompt, and is no answer')
    shell.types('n\n')
    expect(await made).toBe('ERR_APPROVAL_DENIED')
    await shell.does('\u0003', 'ready> ')
  })

  test.each([
    ['SIGHUP', 129],
    ['SIGQUIT', 131],
  ] as const)('gives the terminal back before %s ends it', async (signal, status) => {
    await watchers(0)
    await using shell = await interactive()
    // A shell with job control would put it right itself.
    await shell.does(`sh -c "${watchCommand.trim()}; echo status:\\$?; stty -a"\n`, 'waiting for questions')
    process.kill(shell.job(), signal)
    await shell.shows(`status:${status}`)
    await shell.shows('isig icanon')
  })

  test('a yes to more than this call is taken where all of its arguments were shown', async () => {
    await watchers(0)
    await using person = terminalOf(4000, 'approvals', '--watch')
    await person.shows('waiting for questions')
    const args = { '': 'z'.repeat(1000), command: 'rm -rf / \u001b[2J', wide: '😀' }
    const made = outcomeOf(call('asked', args))
    await person.shows('asked/echo@0#1')
    await person.shows(/"":"z{507}\s+/)
    await person.shows(`+${JSON.stringify(args).length - 512} characters, f shows all`)
    for (const key of ['s', 'p']) {
      await person.shows('y/n/f? ')
      person.types(`${key}\n`)
      await person.shows('s and p are for more than this call: f first, which shows all that it says')
    }
    await person.shows('y/n/f? ')
    expect(person.screen()).not.toContain('rm -rf')
    person.types('f\n')
    await person.shows(`${'z'.repeat(1000)}","command":"rm -rf / \\u001b[2J","wide":"😀"}`)
    await person.shows('y/n/s/p? ')
    person.types('s\n')
    expect(await made).toBe('done')
    await person.shows(/granted by uid \d+, session/)
    expect(await outcomeOf(call('asked', args))).toBe('done')
  })

  test.each([
    ['Ctrl-C', '\u0003'],
    ['Ctrl-D', '\u0004'],
    ['Ctrl-\\', '\u001c'],
  ])('is left by %s instead of an answer, with status 3', async (_, key) => {
    await watchers(0)
    const person = terminal('approvals', '--watch')
    await person.shows('waiting for questions')
    const made = outcomeOf(call('asked', { n: key }))
    await person.shows('y/n/s/p? ')
    person.types(key)
    expect(await person.status).toBe(3)
    expect(await made).toBe('ERR_APPROVAL_UNAVAILABLE')
    const said = stripVTControlCharacters(person.screen())
      .trimEnd()
      .split(/[\r\n]+/)
    expect(said.at(-1)).toMatch(/sallyport: interrupted \(ERR_CALL_CANCELLED\)$/)
    expect(person.screen()).not.toContain('node:internal')
  })

  test('ends with its daemon, also while a question is put', async () => {
    await using other = await daemon(configOf({ asked: fixture('echo') }, { rules }))
    const person = terminal('approvals', '--watch', '--runtime', other.runtimeDir)
    await person.shows('waiting for questions')
    await using caller = await other.connect('host')
    const made = caller.call('tools/call', { server: 'asked', tool: 'echo', arguments: {} })
    const failed = expect(made).rejects.toMatchObject({ code: 'ERR_DAEMON_UNAVAILABLE' })
    await person.shows('y/n/s/p? ')
    other.process.kill('SIGKILL')
    expect(await person.status).toBe(5)
    await failed
  })

  test('what a call says never stands where our own words begin, and --full shows all of it', async () => {
    await watchers(0)
    await using person = terminalOf(60, 'approvals', '--watch', '--full')
    await person.shows('waiting for questions')
    await watchers(1)
    const forged = Array.from(
      { length: 61 },
      (_, n) => `${' '.repeat(n)}a-forged uid 0: nothing/bad@1#1`,
    ).join('')
    const made = outcomeOf(call('asked', { forged, long: `${'x'.repeat(2000)}the end` }))
    await person.shows('the end')
    await person.shows('y/n/s/p? ')
    const lines = stripVTControlCharacters(person.screen()).split(/[\r\n]+/)
    const said = lines.slice(lines.findIndex((line) => line.includes('asked/echo@')) + 1)
    expect(said.length).toBeGreaterThan(50)
    expect(said.filter((line) => !/^(?: {2}|y\/n|$)/.test(line))).toEqual([])
    expect(said.filter((line) => line.length > 60)).toEqual([])
    person.types('n\n')
    expect(await made).toBe('ERR_APPROVAL_DENIED')
  })

  test('JSON is no way for a call to speak to the terminal, and says the same', async () => {
    const evil = '\u001b]0;title\u0007\u009b2J\u202e\u{e0041}'
    expect(await outcomeOf(call('plain', { evil }))).toBe('done')
    for (const verb of [
      ['audit', 'tail', '-n', '3'],
      ['audit', 'tail', '--type', 'call.*'],
    ]) {
      const { stdout } = await at.run([...verb, '--json'])
      expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\p{Cf}]/u)
      expect(JSON.stringify(JSON.parse(stdout))).toContain('\u202e\u{e0041}')
    }
  })

  test('nor at a terminal, where it is passed on as it came: a pipe has it byte for byte', async () => {
    const evil = '\u0085\u009b2J\u202e\u2066\u200b\u2028\u{e0041}'
    // The fixture takes a line separator for the end of a line, but answers with one.
    const args = JSON.stringify({ evil, b: 1, a: 2 }).replace('\u2028', '\\u2028')
    const given = ['call', 'plain', 'echo', '--args', args, '--json']
    const profile = join(at.folder, 'evil.yaml')
    writeFileSync(
      profile,
      `{version: 1, name: evil, extends: offline, description: ${JSON.stringify(evil)}}`,
      {
        mode: 0o600,
      },
    )
    for (const verb of [given, ['audit', 'export'], ['profile', 'show', profile, '--json']]) {
      await using person = terminal(...verb)
      expect(await person.status, person.screen()).toBe(0)
      const shown = person.screen().replaceAll('\r\n', '\n')
      expect(shown).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\p{Cf}\u2028]/u)
      expect(shown).toContain('\\u0085\\u009b2J\\u202e\\u2066\\u200b\\u2028\\udb40\\udc41')
    }
    const [called, exported] = [await at.run(given), await at.run(['audit', 'export'])]
    for (const { stdout } of [called, exported]) expect(stdout).toContain(evil)
    expect(JSON.parse(called.stdout)).toMatchObject({ data: { structuredContent: { evil, b: 1, a: 2 } } })
  })

  test('a watch is told of a yes that is taken back', async () => {
    await watchers(0)
    await using person = terminal('approvals', '--watch')
    await person.shows('waiting for questions')
    const made = outcomeOf(call('asked', { taken: 'back' }))
    await person.shows('y/n/s/p? ')
    person.types('p\n')
    expect(await made).toBe('done')
    await person.shows(/granted by uid \d+, policy/)
    const { standing } = await at.client.call('approvals/list', {})
    await at.run(['deny', standing.at(-1)?.id ?? '', '--reason', 'a slip'])
    await person.shows(/a-[\w-]+.* taken back by uid \d+: an operator said no: a slip/)
  })

  test('a watch without a terminal says that it takes no answer', async () => {
    const watcher = at.start(['approvals', '--watch'])
    const ended = once(watcher, 'exit')
    let said = ''
    watcher.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
    await eventually(() => said.includes('\n'))
    expect(said).toBe(
      'waiting for questions; without a terminal they are shown alone: answer with sallyport approve or sallyport deny\n',
    )
    watcher.kill('SIGINT')
    await ended
  })

  test('nobody who watches is nobody who can be asked: without a terminal, too', async () => {
    await watchers(0)
    expect(await outcomeOf(call('asked', { n: 'alone' }))).toBe('ERR_APPROVAL_UNAVAILABLE')
    const { status, stderr } = await at.run(['call', 'asked', 'echo', '-a', 'n=alone'])
    expect(status).toBe(2)
    expect(stderr).toContain('ERR_APPROVAL_UNAVAILABLE')
  })
})

describe('the operator’s verbs', () => {
  test('accept --tool accepts those alone, and refuses what is not there', async () => {
    expect((await at.run(['accept', 'manual', '--tool', 'nobody'])).status).toBe(8)
    const { status, stdout } = await at.run(['accept', 'manual', '--tool', 'echo'])
    expect(status).toBe(0)
    expect(stdout).toMatch(/^echo +accepted$/m)
    expect(stdout).toMatch(/^fail +left out: not callable$/m)
    expect(await outcomeOf(call('manual'))).toBe('done')
    expect(await outcomeOf(call('manual', {}, 'fail'))).toBe('ERR_DECLARATION_MISSING')
  })

  test('permits revoke takes one or a server, and says what it ended', async () => {
    const { status, stderr } = await at.run(['permits', 'revoke', '--server', 'plain', '--reason', 'a test'])
    expect({ status, stderr }).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('0 permits revoked'),
    })
    const { metadata } = await call('plain')
    expect((await at.run(['permits', 'revoke', metadata.permit ?? ''])).status).toBe(8)
    expect((await at.run(['permits', 'revoke'])).status).toBe(7)
    expect((await at.run(['permits', 'revoke', 'p-x', '--server', 'plain'])).status).toBe(7)
    const { records } = await at.client.call('audit/query', { type: 'permit.revoked' })
    expect(records).toMatchObject([{ body: { server: 'plain', reason: 'a test' } }])
  })

  test('explain names the line that decides, and ends as the call would', async () => {
    await call('plain')
    await host.call('servers/start', { server: 'asked' })
    const denied = await at.run(['explain', 'plain', 'fail'])
    expect(denied.status).toBe(2)
    expect(denied.stdout).toMatch(/^rules +refuse +.*sallyport\.yaml.*rules\[0\] denies mcp:plain:fail$/m)
    const allowed = await at.run(['explain', 'plain', 'echo', '-a', 'x=1'])
    expect(allowed.status).toBe(0)
    expect(allowed.stdout).toMatch(/^rules +pass +.*rules\[2\] allows mcp:\*:\*$/m)
    const { steps } = JSON.parse((await at.run(['explain', 'asked', 'echo', '--json'])).stdout) as {
      steps: { step: string; verdict: string }[]
    }
    expect(steps.map(({ step, verdict }) => `${step} ${verdict}`)).toContain('rules ask')
  })

  test('explain on a narrow terminal says its reasons whole, below themselves', async () => {
    await host.call('servers/start', { server: 'plain' })
    const rowsAt = async (columns: number) => {
      await using person = terminalOf(columns, 'explain', 'plain', 'fail')
      await person.shows('would be refused')
      return stripVTControlCharacters(person.screen()).split(/\r?\n/)
    }
    const wide = await rowsAt(300)
    const rows = await rowsAt(50)
    const column = rows[0]?.indexOf('WHY') ?? 0
    expect(rows.filter((row) => row.length > 50)).toEqual([])
    expect(rows.filter((row) => row.startsWith(' '.repeat(column))).length).toBeGreaterThan(1)
    const words = (lines: readonly string[]) => lines.join(' ').split(/\s+/)
    expect(words(rows)).toEqual(words(wide))
  })

  test('explain CALL says how a call was decided and what came of it', async () => {
    const explained = async (id: string) => {
      const { stdout, status, stderr } = await at.run(['explain', id, '--json'])
      expect(stderr).toBe('')
      return { status, ...(JSON.parse(stdout) as ExplainedCall) }
    }
    const { call_id: made } = await call('plain')
    await eventually(async () => (await explained(made)).state === 'done')
    const uid = String(process.getuid?.())
    expect(await explained(made)).toMatchObject({
      status: 0,
      identity: 'plain/echo@0#1',
      principal: uid,
      action: 'allow',
      rule: 'sallyport.yaml rules[2]',
      place: { path: at.config, line: 1 },
      policy: { is_present: true },
      trust: { tier: 'untrusted', epoch: 0 },
      approval: null,
      permit: expect.stringMatching(/^p-/),
      check: 'passed',
      intent: { seq: expect.any(Number) },
      outcome: { seq: expect.any(Number), outcome: 'result' },
      refusal: null,
    })
    const said = await at.run(['explain', made])
    expect(said.stdout).toMatch(/^rule +sallyport\.yaml rules\[2\], at \/.*sallyport\.yaml:1$/m)
    expect(said.stdout).toMatch(
      /^would change it +a rule that asks or denies, before sallyport\.yaml rules\[2\]$/m,
    )

    const refusedCall = async (...asked: Parameters<typeof call>): Promise<string> => {
      const { head } = await at.client.call('audit/query', { limit: 1 })
      await expect(call(...asked)).rejects.toThrow()
      const { records } = await at.client.call('audit/query', { type: 'call.denied', after: head.seq })
      return (records.at(-1)?.body as { call: string } | undefined)?.call ?? ''
    }
    expect(await explained(await refusedCall('plain', {}, 'fail'))).toMatchObject({
      status: 2,
      state: 'refused',
      action: 'deny',
      rule: 'sallyport.yaml rules[0]',
      check: null,
      intent: null,
      refusal: { code: 'ERR_POLICY_DENIED' },
      change: 'sallyport.yaml rules[0]',
    })
    expect(await explained(await refusedCall('asked', { explain: 1 }))).toMatchObject({
      status: 2,
      identity: 'asked/echo@0#1',
      action: 'ask',
      rule: 'sallyport.yaml rules[1]',
      approval: { granted: false, by: null, reason: expect.stringContaining('no operator') },
      refusal: { code: 'ERR_APPROVAL_UNAVAILABLE' },
      change: expect.stringContaining('sallyport approvals --watch'),
    })
    await at.run(['hold', 'plain'])
    const held = await refusedCall('plain')
    await at.run(['release', 'plain'])
    expect(await explained(held)).toMatchObject({
      action: 'allow',
      check: 'checkpoint',
      intent: { seq: expect.any(Number) },
      outcome: null,
      refusal: { code: 'ERR_PERMIT_REFUSED' },
      change: expect.stringContaining('sallyport release'),
    })
    for (const args of [
      ['explain', 'c-000000000000'],
      ['explain', 'c-'],
      ['explain', 'c-no such id'],
      ['approve', 'nothing'],
      ['deny', 'a-1'],
      ['permits', 'revoke', 'p-x'],
      ['audit', 'show', 'c-x'],
    ])
      expect({ args, status: (await at.run(args)).status }).toEqual({ args, status: 8 })
    expect((await at.run(['explain', 'plain'])).status).toBe(7)
    expect((await at.run(['explain', made, '-a', 'x=1'])).status).toBe(7)
  })

  test('audit tail says of each record what it is about', async () => {
    await call('plain')
    await call('asked').catch(() => undefined)
    const accepted = await at.run([
      'audit',
      'tail',
      '--type',
      'surface.accepted',
      '--server',
      'plain',
      '-n',
      '1',
    ])
    expect(accepted.stdout).toMatch(
      / server=plain declarationVersion=1 tools=echo,fail,error acceptedBy=first-use\n$/,
    )
    const applied = await at.run(['audit', 'tail', '--type', 'config.applied'])
    expect(applied.stdout).toMatch(/ mode=default\n$/)
    await using operator = await at.connect('operator')
    await operator.call('approvals/subscribe', {})
    const made = handled(call('asked', { tail: 1 }))
    const { id } = await eventually(async () => (await operator.call('approvals/list', {})).pending[0])
    await operator.call('approvals/approve', { id, scope: 'policy' })
    await made
    await operator.call('approvals/deny', { id })
    const ended = await eventually(async () => {
      const { stdout } = await at.run(['audit', 'tail', '--type', 'approval.ended'])
      return stdout.includes(id) && stdout
    })
    expect(ended).toMatch(new RegExp(`approval\\.ended ids=${id} by=${process.getuid?.()}\n`))
  })

  test('audit tail -f goes on as calls come, and show has every record of one whole', async () => {
    const child = at.start(['audit', 'tail', '-f', '-n', '1', '--server', 'plain', '--json'])
    let said = ''
    child.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()))
    const ids: string[] = []
    const made = await eventually(async () => {
      ids.push((await call('plain', { tail: true })).call_id)
      return ids.find((id) => said.includes(id)) // the tail may be some calls behind
    })
    await eventually(() => said.includes('call.outcome'))
    const ended = once(child, 'exit')
    child.kill('SIGINT')
    expect((await ended)[0]).toBe(3)
    const { stdout, status } = await at.run(['audit', 'show', made])
    expect(status).toBe(0)
    expect(stdout).toMatch(/^record +\d+ call\.intent$[\s\S]*^record +\d+ call\.outcome$/m)
    expect(stdout).toContain('"arguments":{"tail":true}')
    expect((await at.run(['audit', 'show', `${made.slice(0, -3)}xxx`])).status).toBe(8)
    expect((await at.run(['audit', 'show', 'nonsense'])).status).toBe(7)
  })
})

describe('what lists show of tools', () => {
  test('names that two tools would have are nobody’s, and said to be', async () => {
    for (const server of ['a', 'a_b']) await host.call('servers/start', { server })
    const { tools, collisions } = await host.call('tools/list', { all: true })
    expect(collisions).toEqual(expect.arrayContaining(['a_b_c']))
    expect(tools.map(({ name }) => name)).not.toContain('a_b_c')
    expect(tools.map(({ name }) => name)).toContain('a_only')
    const { stdout, stderr } = await at.run(['tools'])
    expect(stdout + stderr).toContain('a_b_c')
    // By server and tool each is itself.
    expect((await call('a', {}, 'b_c')).metadata.identity).toMatch(/^a\/b_c@/)
  })

  test('words that hold a secret are withheld, and what paints a terminal is taken out', async () => {
    await host.call('servers/start', { server: 'a' })
    const { tools } = await host.call('tools/list', { server: 'a', all: true })
    const said = (tool: string) => tools.find((one) => one.tool === tool)?.description
    expect(said('leaks')).toMatch(/^\(withheld: it holds what looks like/)
    expect(said('paints')).toMatch(/^Safe +tool$/)
    const described = () => host.call('tools/describe', { server: 'a', tool: 'leaks' })
    const schema = {
      title: expect.stringMatching(/^Safe +tool$/),
      description: expect.stringMatching(/^\(withheld: /),
    }
    const shown = {
      name: 'a_leaks',
      decision: 'allow',
      input_schema: schema,
      output_schema: schema,
      declaration: { parameters: schema, output: schema },
    }
    expect(JSON.stringify(await host.call('tools/search', { query: 'key log in' }))).not.toContain('AKIA')
    const connected = await described()
    await host.call('servers/stop', { server: 'a' })
    for (const full of [connected, await described()]) {
      expect(full).toMatchObject(shown)
      expect(JSON.stringify(full)).not.toContain('AKIA')
    }
  })

  test('what a rule hides is not described, whether or not its server is connected', async () => {
    const described = () => host.call('tools/describe', { server: 'plain', tool: 'fail' })
    await host.call('servers/start', { server: 'plain' })
    await expect(described()).rejects.toMatchObject({ code: 'ERR_TOOL_NOT_FOUND' })
    await host.call('servers/stop', { server: 'plain' })
    await expect(described()).rejects.toMatchObject({ code: 'ERR_TOOL_NOT_FOUND' })
  })
})

test('a journal that was tampered with is told of with status 4, and no daemon starts on it', async () => {
  await using other = await daemon(configOf({ plain: fixture('echo') }))
  await other.client.call('tools/call', { server: 'plain', tool: 'echo', arguments: {} })
  const folder = join(other.stateDir, 'journal')
  const [first = ''] = readdirSync(folder).filter((name) => name.endsWith('.jsonl'))
  const path = join(folder, first)
  const whole = readFileSync(path, 'utf8')
  expect((await other.run(['audit', 'verify'])).status).toBe(0)
  writeFileSync(path, whole.replace('"type":"call.intent"', '"type":"call.intend"'))
  const there = await other.run(['audit', 'verify'])
  expect(there.status).toBe(4)
  expect(there.stdout).toContain('NOT what was written')
  const here = await other.run(['audit', 'verify', '--state', other.stateDir, '--json'])
  expect(here.status).toBe(4)
  expect(JSON.parse(here.stdout)).toMatchObject({ ok: false, flaw: { kind: 'hash', path } })
  const ended = once(other.process, 'exit')
  other.process.kill('SIGTERM')
  await ended
  const started = await other.run(['serve'])
  expect(started.status).toBe(4)
  expect(started.stderr).toContain('ERR_JOURNAL_CORRUPT')
})
