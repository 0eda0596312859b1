// Who is kept from whom: only where no host shares a uid with the daemon or a sandbox.
import { describe, expect, it } from 'vitest'
import { admission, expectServerApart } from '../../src/daemon/separation.ts'
import type { UserDatabase } from '../../src/daemon/separation.ts'
import { settingsOf } from '../../src/config/load.ts'
import type { ServerSettings, Settings } from '../../src/schema/settings.ts'
import { serverSettings } from '../support/server-settings.ts'

const database: UserDatabase = {
  passwd:
    'root:x:0:0::/root:/bin/sh\nann:x:1001:1001::/:/bin/sh\nbob:x:1002:700::/:/bin/sh\nsally:x:990:990::/:/bin/false\n',
  group: 'root:x:0:\nhosts:x:700:ann\nsally:x:990:\n',
}
const plain = await settingsOf({ version: 1 }, '/', { env: {}, home: '/', uid: 0 })
const settings = (more: Partial<Settings>, runAs?: number): Settings => {
  const servers = runAs === undefined ? [] : [['s', { name: 's', runAs }]]
  return { ...plain, ...more, servers: new Map(servers as never) }
}

describe('separation', () => {
  it('is none where hosts are the daemon’s own user', () => {
    expect(admission(settings({}), 1001, database)).toMatchObject({ hostGid: null, separation: 'none' })
  })

  it('is full where a group of others is admitted', () => {
    expect(admission(settings({ hostGroup: 'hosts' }), 990, database)).toMatchObject({
      hostGid: 700,
      separation: 'full',
    })
  })

  it('is none where the daemon is of that group, by name or by its primary group', () => {
    expect(admission(settings({ hostGroup: 'hosts' }), 1001, database).separation).toBe('none')
    expect(admission(settings({ hostGroup: 'hosts' }), 1002, database).separation).toBe('none')
  })

  it('that is required and can not be is refused with the mend', () => {
    expect(() => admission(settings({ requireSeparation: true }), 990, database)).toThrow(
      expect.objectContaining({ code: 'ERR_SEPARATION', message: expect.stringContaining('host_group') }),
    )
    expect(() =>
      admission(settings({ requireSeparation: true, hostGroup: 'hosts' }), 990, database),
    ).not.toThrow()
  })

  it('does not let a sandbox run as a host', () => {
    expect(() => admission(settings({ hostGroup: 'hosts' }, 1001), 0, database)).toThrow(
      expect.objectContaining({ code: 'ERR_SEPARATION' }),
    )
  })

  it('judges a server that is added by its own uid, whatever else there is wrong by now', () => {
    const now = settings({ requireSeparation: true, hostGroup: 'hosts' }, 1001) // a host since the start
    const add =
      (runAs: number | null, group = now.hostGroup) =>
      (): void =>
        expectServerApart(
          { ...now, hostGroup: group },
          0,
          { name: 'x', runAs } as ServerSettings,
          () => database,
        )
    expect(add(null)).not.toThrow()
    expect(add(null, 'gone')).not.toThrow()
    expect(add(990)).not.toThrow()
    expect(add(1001)).toThrow(expect.objectContaining({ code: 'ERR_SEPARATION' }))
    expect(add(990, 'gone')).toThrow(expect.objectContaining({ code: 'ERR_CONFIG_INVALID' }))
  })
})

describe('admission', () => {
  it('lets only the daemon’s user and root in where no group is named', () => {
    const { admitsHost, admitsOperator } = admission(settings({}), 990, database)
    expect([0, 990, 1001].map(admitsHost)).toEqual([true, true, false])
    expect([0, 990, 1001].map(admitsOperator)).toEqual([true, true, false])
  })

  it('never lets a sandbox’s uid in, nor a host to the operator’s door', () => {
    const { admitsHost, admitsOperator } = admission(settings({ hostGroup: 'hosts' }, 1500), 0, database)
    expect([0, 1001, 1500].map(admitsHost)).toEqual([true, true, false])
    expect([0, 1001].map(admitsOperator)).toEqual([true, false])
  })

  it('judges a server that comes later, and who comes then, by the servers that there are by then', () => {
    const servers = new Map<string, ServerSettings>()
    const later = (runAs: number): ServerSettings => ({ ...serverSettings('echo.mjs'), name: 'later', runAs })
    const { admitsHost, expectApart } = admission({ ...plain, hostGroup: 'hosts', servers }, 0, database)
    expect(() => expectApart(later(1001))).toThrow(expect.objectContaining({ code: 'ERR_SEPARATION' }))
    expect(() => expectApart(later(1500))).not.toThrow()
    expect(admitsHost(1500)).toBe(true)
    servers.set('later', later(1500))
    expect(admitsHost(1500)).toBe(false)
  })

  it('refuses a group that does not exist, with the command that makes it', () => {
    expect(() => admission(settings({ hostGroup: 'nobodies' }), 0, database)).toThrow(
      /groupadd --system nobodies/,
    )
  })
})
