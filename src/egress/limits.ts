// Bounds of a way out that no configuration moves; those that it may move are in the policy.

/** For the line that says what a connection is for. */
export const openingMs = 2000
/** Longest such line, its line feed included. */
export const openingBytes = 300
/** One lookup of a name, A and AAAA together. */
export const resolveMs = 3000
/** What the slower of A and AAAA is given once the other gave addresses. */
export const secondFamilyMs = 250
/** Addresses of one answer that are judged, and of those that pass the ones that are dialled. */
export const judgedAddresses = 64
export const dialledAddresses = 8
/** Connections at once over all doors of a daemon. */
export const daemonConnections = 4096
/** Head of an HTTP request, bytes, and its fields. */
export const headBytes = 65_536
export const headFields = 128
/** One line of the notices. */
export const noticeBytes = 1200
/** Refusals that a door tells at once, and a second after that; more are counted. */
export const tellBurst = 100
export const tellPerSecond = 20
/** How long refusals are counted before they are told. */
export const tellMs = 1000
/** Different refusals that are counted apart. */
export const toldApart = 64
/** For the last bytes of an answer to be taken. */
export const farewellMs = 1000
