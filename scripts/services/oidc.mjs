// The provider behind oidc.sh. `POST /rotate` gives it a new signing key, as providers do. Whoever comes with
// a browser, for the client `page`, is signed in as `ada` without being asked.
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

// The first line is the address, and nobody reads what comes after it: what the provider notes goes elsewhere.
console.info = console.error;

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
    clients: [{
      client_id: 'page',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code'],
      response_types: ['code'],
      redirect_uris: ['http://127.0.0.1/sign-in'],
    }, ...roles.flatMap((role) => tenants.map((tenant) => ({
      client_id: `${role}${tenant}`,
      client_secret: 'secret',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    })))],
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, preferred_username: id }) }),
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    loadExistingGrant: async (ctx) => {
      const grant = new made.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
      grant.addOIDCScope('openid profile email');
      grant.addResourceScope('urn:noetl', 'api');
      await grant.save();
      return grant;
    },
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
      return { roles: [role === 'page' ? 'operator' : role], ...(tenant && { tenant }) };
    },
  });
  const answer = made.callback();
  return (request, response) => {
    if (!request.url.startsWith('/interaction/')) return answer(request, response);
    // A native client asks for consent each time.
    return made.interactionFinished(request, response, { login: { accountId: 'ada' }, consent: {} });
  };
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
