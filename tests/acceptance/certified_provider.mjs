// node-oidc-provider, which is certified by the OpenID Foundation, for tests: PORT REDIRECT…
// Whoever signs in at its development pages is who they say they are.
import Provider from "oidc-provider";

const [port, connecting, signingIn] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "deputy",
      token_endpoint_auth_method: "none",
      redirect_uris: [connecting],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
    },
    {
      client_id: "deputy-sign-in",
      client_secret: "a-secret-that-is-long-enough-for-anybody",
      redirect_uris: [signingIn],
      grant_types: ["authorization_code"],
      response_types: ["code"],
    },
    {
      client_id: "crm",
      client_secret: "another-secret-that-is-long-enough",
      redirect_uris: [],
      response_types: [],
      grant_types: [],
    },
  ],
  pkce: { required: () => true },
  features: {
    introspection: { enabled: true, allowedPolicy: () => true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => ({ scope: "crm", audience: resource, accessTokenFormat: "opaque" }),
    },
  },
  issueRefreshToken: (ctx, client) => client.grantTypeAllowed("refresh_token"),
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id, preferred_username: id }) }),
  cookies: { keys: ["test"] },
});
provider.listen(Number(port), "127.0.0.1");
