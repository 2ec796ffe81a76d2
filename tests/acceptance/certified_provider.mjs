// node-oidc-provider, which is certified by the OpenID Foundation, for tests: PORT REDIRECT…
// Whoever signs in at its development pages is who they say they are. It exchanges tokens (RFC 8693) for CRM's, in
// the way that its documentation has for grants of one's own.
import Provider, { errors } from "oidc-provider";

const [port, connecting, signingIn] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS = "urn:ietf:params:oauth:token-type:access_token";
const CRM = "https://crm.example.org/";

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
      grant_types: ["authorization_code", "refresh_token", "client_credentials", EXCHANGE],
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
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => ({ scope: "crm", audience: resource, accessTokenFormat: "opaque" }),
    },
  },
  extraTokenClaims: (ctx) => (ctx.actor ? { act: { sub: ctx.actor } } : undefined),
  issueRefreshToken: (ctx, client) => client.grantTypeAllowed("refresh_token"),
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id, preferred_username: id }) }),
  cookies: { keys: ["test"] },
});

async function exchange(ctx) {
  const { client, params } = ctx.oidc;
  const subject = await provider.AccessToken.find(params.subject_token);
  if (!subject || params.subject_token_type !== ACCESS || subject.clientId !== client.clientId) {
    throw new errors.InvalidGrant("no such subject");
  }
  if (!params.resource?.startsWith(CRM)) throw new errors.InvalidTarget();
  const actor = params.actor_token && (await provider.ClientCredentials.find(params.actor_token));
  ctx.actor = actor?.clientId;
  const { accountId, grantId } = subject;
  const token = new provider.AccessToken({ accountId, grantId, client, gty: "exchange" });
  const format = params.resource.endsWith("/opaque") ? "opaque" : "jwt";
  const about = { audience: params.resource, scope: "crm", accessTokenFormat: format, accessTokenTTL: 120 };
  token.resourceServer = new provider.ResourceServer(params.resource, about);
  token.scope = "crm";
  ctx.oidc.entity("AccessToken", token);
  const answer = { access_token: await token.save(), issued_token_type: ACCESS, token_type: "Bearer" };
  ctx.body = { ...answer, expires_in: token.expiration, scope: token.scope };
}
const sent = ["subject_token", "subject_token_type", "actor_token", "actor_token_type", "resource", "audience"];
provider.on("server_error", (ctx, error) => console.error(error));
provider.registerGrantType(EXCHANGE, exchange, [...sent, "scope", "requested_token_type"]);
provider.listen(Number(port), "127.0.0.1");
