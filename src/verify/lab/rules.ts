// The rules by which a launch is refused before anything is built, each by the words that it says then: which of them answered is
// what a probe of one of them is about.
const rules = {
  'what is denied to everybody': /which no configuration grants/,
  'only files and folders are mounted': /is a device, socket or pipe/,
  'a way out where the profile has one': /a way out, and profile \S+ says network\.mode: /,
  'targets of the sandbox’s own': /which is the sandbox’s own/,
  'targets apart from each other': /overlaps the mount of/,
  'paths spelled in one way': /is not two absolute paths/,
  'no more than the profile’s mounts': /^ERR_PROFILE_EXCEEDED /,
  'a working directory of the sandbox': /is not a folder of the sandbox/,
  'code apart from writable mounts':
    /shares files with the writable mount|lies in the writable mount .* keep programs outside/,
  'a script in a read-only mount': /^ERR_ARGUMENT_REFUSED .* lies in the writable mount/,
  'a script in a mount': /^ERR_ARGUMENT_REFUSED .* lies in no mount/,
  'code as it was registered': /^ERR_(COMMAND|PACKAGE)_CHANGED /,
  'commands that are allowed': /is not in allowed_commands/,
  'commands by a bare name': /is not a bare name/,
  'what the host runs is not written': /from which the host runs programs/,
  'no link for a version-control folder': /a link in the place of a version-control folder/,
  'protected files that are few': /protected files, 256 is the most/,
  'mounts that the user can use': /^ERR_MOUNT_REFUSED .* cannot be (written|read) by /,
  'code that is its owner’s to write': /^ERR_(COMMAND|PACKAGE)_UNSAFE /,
} as const satisfies Readonly<Record<string, RegExp>>

/** A rule, in the words of reports. */
export type Rule = keyof typeof rules

/** The rule that refused with this line, the first that it fits; null where it is none of these. */
export const ruleOf = (refusal: string): Rule | null =>
  (Object.keys(rules) as Rule[]).find((rule) => rules[rule].test(refusal)) ?? null
