// The hostile spellings of a target, in the groups of the research: what each must come to, wherever it is written.

/** One text that somebody writes where a host is expected. The list allows allowed.com:443 and *.allowed.com:443. */
export interface HostileHost {
  readonly group: number
  readonly text: string
  /** `invalid`: no host name; `unlisted`: a name, and not on the list; `listed`: another spelling of one that is */
  readonly outcome: 'invalid' | 'unlisted' | 'listed'
}

const invalid = (group: number, ...texts: readonly string[]): readonly HostileHost[] =>
  texts.map((text) => ({ group, text, outcome: 'invalid' }))
const unlisted = (group: number, ...texts: readonly string[]): readonly HostileHost[] =>
  texts.map((text) => ({ group, text, outcome: 'unlisted' }))

/** Groups 1 to 34 and 41; the others are behaviours, and have tests of their own. */
export const hostileHosts: readonly HostileHost[] = [
  ...invalid(1, '127.1', '127.0.1'),
  ...invalid(2, '2130706433', '4294967296'),
  ...invalid(3, '0x7f000001', '0X7F000001'),
  ...invalid(4, '0x7f.1', '127.0.0.0x1'),
  ...invalid(5, '017700000001'),
  ...invalid(6, '0177.0.0.1'),
  ...invalid(7, '127.000.000.001'),
  ...invalid(8, '00127.0.0.1'),
  ...invalid(9, '0', '00', '0x0', '0x'),
  ...invalid(10, '127.0.0.1.', '127.0.0.1', '1.1.1.1'),
  ...invalid(11, '①②⑦.⓪.⓪.①'),
  ...invalid(12, '127。0。0。1', 'allowed。com', 'allowed．com', 'allowed｡com'),
  ...invalid(13, '１２７.0.0.1', 'ａllowed.com'),
  ...invalid(14, '[::1]', '::1'),
  ...invalid(15, '[::]', '::'),
  ...invalid(16, '[::ffff:127.0.0.1]', '[::ffff:7f00:1]'),
  ...invalid(17, '[::127.0.0.1]'),
  ...invalid(18, '[64:ff9b::7f00:1]'),
  ...invalid(19, '[2002:7f00:1::]'),
  ...invalid(20, 'fe80::1%lo', '[fe80::1%25lo]'),
  ...invalid(21, '::1%x.allowed.com', '[::1%x.allowed.com]'),
  ...invalid(22, '169.254.169.254', '0xa9fea9fe', '2852039166', '[::ffff:a9fe:a9fe]'),
  ...invalid(23, '[fd00:ec2::254]', '100.100.100.200', '168.63.129.16'),
  ...invalid(24, '127.0.0.1\0.allowed.com', 'x\0.allowed.com', 'allowed.com\0'),
  ...invalid(25, '127.0.0.1%00.allowed.com', 'allowed.com%00', '%61llowed.com'),
  ...invalid(26, 'allowed.com@127.0.0.1', 'user@allowed.com', 'user:pass@allowed.com', '@allowed.com'),
  ...invalid(27, '127.0.0.1#.allowed.com', 'allowed.com#', 'allowed.com?', 'allowed.com/'),
  ...invalid(28, '127.0.0.1:80\\@allowed.com', 'evil.net\\.allowed.com', '\\allowed.com'),
  ...invalid(29, 'allowed.com\r\nHost: evil', 'allowed.com\nX', 'allowed.com\r'),
  ...invalid(30, '127.0.0.1\t', 'allowed.com\t', 'al\tlowed.com', ' allowed.com', 'allowed.com '),
  ...unlisted(31, 'evil-allowed.com', 'allowed.com.evil.net', 'xallowed.com', 'com'),
  { group: 32, text: 'ALLOWED.com.', outcome: 'listed' },
  ...invalid(32, 'allowed.com..', '.allowed.com', 'x..allowed.com', '.', '', '*.allowed.com', '*'),
  ...invalid(33, 'allowed.com:443.evil'),
  ...unlisted(34, 'аllowed.com', 'xn--llowed-2nf.com', 'xn--80ak6aa92e.com'),
  ...invalid(
    34,
    'xn--a.allowed.com',
    'xn--.allowed.com',
    'xn--allowed-.com',
    'ſ.allowed.com',
    '\u212a.allowed.com',
  ),
  ...invalid(
    34,
    'allowed.com\u200b',
    'al\u00adlowed.com',
    'allowed\u2024com',
    'allowed\u202ecom',
    'ﬁ.allowed.com',
  ),
  ...invalid(41, 'x'.repeat(65_536), `${'x'.repeat(64)}.allowed.com`, `${'abcd.'.repeat(60)}allowed.com`),
  ...invalid(41, '-x.allowed.com', 'x-.allowed.com', 'x.allowed.com-', 'x.allowed.c_m'),
]

/** Group 33: ports that are none, or two. */
export const hostilePorts: readonly string[] = [
  '0443',
  '65536',
  '0',
  '+443',
  ' 443',
  '443 ',
  '-443',
  '0x1bb',
  '4.43e2',
  '443.0',
  '443,80',
  '',
  '４４３',
  '44३',
  '4294967739',
  '443.evil',
  '443:80',
]

/** How a test's title shows it. */
export const shown = (text: string): string =>
  JSON.stringify(text.length > 40 ? `${text.slice(0, 20)}…${text.length}` : text)
