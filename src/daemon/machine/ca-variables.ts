// Where programs look for the certificates that they trust: the bundle of a sandbox whose own authority stands in for hosts.

/** Where the bundle is in the sandbox. */
export const caTarget = '/sallyport/ca.pem'

/** What OpenSSL, Node, Python, curl, git, pip, AWS, Deno and cargo read the path of a bundle from. */
export const caVariables: Readonly<Record<string, string>> = Object.fromEntries(
  [
    'SSL_CERT_FILE',
    'NODE_EXTRA_CA_CERTS',
    'REQUESTS_CA_BUNDLE',
    'CURL_CA_BUNDLE',
    'GIT_SSL_CAINFO',
    'PIP_CERT',
    'AWS_CA_BUNDLE',
    'DENO_CERT',
    'CARGO_HTTP_CAINFO',
  ].map((name) => [name, caTarget]),
)
