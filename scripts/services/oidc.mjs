// The provider behind oidc.sh. `POST /rotate` gives it a new signing key, as providers do.
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const roles = ['admin', 'operator', 'author', 'viewer', 'worker', 'nothing'];
const tenants = ['', '@acme'];
let serial = 0;

function key() {
  serial += 1;
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: `key-${serial}`, alg: 'RS256', use: 'sig' };
}

function provider(issuer) {
  const made = new Provider(issuer, {
    jwks: { keys: [key()] },
    clients: roles.flatMap((role) => tenants.map((tenant) => ({
      client_id: `${role}${tenant}`,
      client_secret: 'secret',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    }))),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => 'urn:noetl',
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({
          scope: 'api',
          audience: resource === 'urn:other' ? 'other' : 'noetl',
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    extraTokenClaims: (_, token) => {
      const [role, tenant] = token.clientId.split('@');
      return { roles: [role], ...(tenant && { tenant }) };
    },
  });
  return made.callback();
}

let answer;
const server = createServer((request, response) => {
  if (request.method === 'POST' && request.url === '/rotate') {
    answer = provider(address());
    response.writeHead(204).end();
    return;
  }
  answer(request, response);
});
const address = () => `http://127.0.0.1:${server.address().port}`;
server.listen(0, '127.0.0.1', () => {
  answer = provider(address());
  process.stdout.write(`${address()}\n`);
});
process.stdin.on('close', () => process.exit(0)).resume();
