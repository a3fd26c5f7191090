// The webhook endpoints of a bank: each operation of the API as a method.

import { type CallOptions, type Through, read, requestId, segment } from "./calls.js";
import * as api from "./generated/sdk.gen.js";
import type {
  WebhookEndpoint,
  WebhookEndpointOrder,
  WebhookEndpoints,
  WebhookSecrets,
} from "./generated/types.gen.js";
import * as shapes from "./shapes.js";

/** An endpoint as it is now. `created` says that the request created it. */
export interface PutEndpoint {
  endpoint: WebhookEndpoint;
  created: boolean;
}

/** A secret that signs messages, until a time if it is not the newest. Give its text to `verify`; never log it. */
export type EndpointSecret = WebhookSecrets["secrets"][number];

/** The webhook endpoints of a bank. Writing needs the scope `payments/webhooks`. */
export class Endpoints {
  readonly #through: Through;

  constructor(through: Through) {
    this.#through = through;
  }

  /** Returns all endpoints, at most 20, in the order of their ids. */
  async list(options: CallOptions = {}): Promise<WebhookEndpoint[]> {
    const answer = await api.listWebhookEndpoints({ ...this.#through, headers: requestId(options) });
    return read<WebhookEndpoints>(answer, shapes.endpoints).endpoints;
  }

  /** Returns an endpoint with its last deliveries. */
  async get(endpointId: string, options: CallOptions = {}): Promise<WebhookEndpoint> {
    return read(await api.getWebhookEndpoint(this.#call(endpointId, options)), shapes.endpoint);
  }

  /** Creates an endpoint, or changes it: `cursor` counts for a new one alone. Repeating it is safe. */
  async put(endpointId: string, order: WebhookEndpointOrder, options: CallOptions = {}): Promise<PutEndpoint> {
    const answer = await api.putWebhookEndpoint({ ...this.#call(endpointId, options), body: order });
    return { endpoint: read<WebhookEndpoint>(answer, shapes.endpoint), created: answer.response.status === 201 };
  }

  /** Deletes an endpoint. After a lost answer, the error can be `no-such-endpoint`. */
  async delete(endpointId: string, options: CallOptions = {}): Promise<void> {
    // Of an endpoint whose stored items were damaged, nothing but the id is known.
    read(await api.deleteWebhookEndpoint(this.#call(endpointId, options)), shapes.deletedEndpoint);
  }

  /** Returns the secrets that sign an endpoint's messages now, the newest first. */
  async secrets(endpointId: string, options: CallOptions = {}): Promise<EndpointSecret[]> {
    const answer = await api.getWebhookSecret(this.#call(endpointId, options));
    return read<WebhookSecrets>(answer, shapes.secrets).secrets;
  }

  /** Asks for a message with one event of the type `webhook.test`, within a minute. */
  async test(endpointId: string, options: CallOptions = {}): Promise<WebhookEndpoint> {
    return read(await api.testWebhookEndpoint({ ...this.#call(endpointId, options), body: {} }), shapes.endpoint);
  }

  /** Moves an endpoint to a cursor of the log: the events after it are delivered again. */
  async replay(endpointId: string, cursor: string, options: CallOptions = {}): Promise<WebhookEndpoint> {
    const body = { cursor };
    return read(await api.replayWebhookEvents({ ...this.#call(endpointId, options), body }), shapes.endpoint);
  }

  /** Skips the event that an endpoint does not accept. Repeating it is safe. */
  async skip(endpointId: string, eventId: string, options: CallOptions = {}): Promise<WebhookEndpoint> {
    const body = { eventId };
    return read(await api.skipWebhookEvent({ ...this.#call(endpointId, options), body }), shapes.endpoint);
  }

  /** Begins a new secret, of the next generation. The one before also signs for a day. Repeating it is safe. */
  async rotate(endpointId: string, generation: number, options: CallOptions = {}): Promise<WebhookEndpoint> {
    const body = { generation };
    return read(await api.rotateWebhookSecret({ ...this.#call(endpointId, options), body }), shapes.endpoint);
  }

  #call(endpointId: string, options: CallOptions) {
    return { ...this.#through, path: { endpointId: segment(endpointId) }, headers: requestId(options) };
  }
}
