// The console's script: signs in, loads the view that the address names, and keeps it fresh.
//
// The token lives in this page's memory alone: a reload signs in again, and closing the page forgets it. Nothing is stored in
// the browser. A view is named behind the # of the address, which the browser never sends.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const main = $("main"), problem = $("problem"), status = $("status"), read = $("read"), live = $("live"), dialog = $("dialog");
  const { clientId, operateClientId, authorizeUrl, tokenUrl } = document.body.dataset;
  const callback = location.origin + location.pathname;
  let token = null, acted = false, turns = 0;
  // Raised by all that makes an answer under way useless: another view, and signing out.
  let era = 0;
  // Whether a view was shown with this token.
  let isAccepted = false;
  // Where the last sign-in waits for its code.
  let channel = null;

  // ------------------------------------------------------------ signing in

  // The window that came back from the provider hands its code to the one that asked, and closes.
  const answered = new URLSearchParams(location.search);
  if (answered.has("state")) {
    const channel = new BroadcastChannel("console-sign-in");
    channel.postMessage(Object.fromEntries(answered));
    channel.close();
    history.replaceState(null, "", callback);
    main.textContent = "You can close this window.";
    window.close();
    return;
  }

  const base64url = (bytes) =>
    btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

  // RFC 7636: the provider gives the token only to the page that knows the verifier.
  // Whoever only looks gets a token that can do nothing else.
  async function signIn(client, scope) {
    const verifier = random(), state = random();
    // Opened before anything is awaited: later, browsers take it for an advertisement.
    const popup = window.open("", "_blank", "popup,width=480,height=640");
    const challenge = base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
    const url = new URL(authorizeUrl, location.href);
    const query = {
      response_type: "code", client_id: client, redirect_uri: callback, scope, state,
      code_challenge: challenge, code_challenge_method: "S256",
    };
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    // An earlier sign-in is given up: nobody hears its code any more.
    channel?.close();
    const mine = (channel = new BroadcastChannel("console-sign-in"));
    const answer = new Promise((resolve) => {
      mine.onmessage = ({ data }) => data.state === state && resolve(data);
    });
    if (!popup) return tell("The browser blocked the window in which you sign in. Allow it for this site, and try again.");
    popup.opener = null;
    popup.location = url;
    say("Sign in in the other window. If it is closed, press Sign in again.");
    const { code, error } = await answer;
    mine.close();
    if (!code) return tell(`The provider did not sign you in: ${error ?? "it sent no code"}.`);
    const form = new URLSearchParams({
      grant_type: "authorization_code", code, client_id: client, redirect_uri: callback, code_verifier: verifier,
    });
    let given = null;
    try {
      const response = await fetch(tokenUrl, { method: "POST", body: form, cache: "no-store", credentials: "omit" });
      given = response.ok ? ((await response.json()).access_token ?? null) : null;
    } catch {
      // Told below.
    }
    if (channel !== mine) return;
    [token, isAccepted] = [given, false];
    mayAct(token !== null && scope.includes("payments/operate"));
    if (!token) return tell("The provider gave no token. Try again; if that does not help, see the console's client there.");
    say("Signed in.");
    showSession();
    show();
  }

  function signOut(why) {
    [token, channel] = [null, channel?.close() ?? null];
    acted = false;
    dialog.close();
    mayAct(false);
    clear();
    document.title = "Scheduled payments";
    showSession();
    say(why);
  }

  function showSession() {
    $("sign-in").hidden = !clientId || token !== null;
    $("sign-in-to-act").hidden = !operateClientId || token !== null;
    $("sign-out").hidden = !clientId || token === null;
  }

  // Forms of actions are shown to whom they may help. The bank decides.
  function mayAct(may) {
    document.body.toggleAttribute("data-may-act", may);
  }

  // Empties the page, and refuses what is under way.
  function clear() {
    era += 1;
    main.replaceChildren();
    read.textContent = "";
    live.hidden = true;
    tell("");
  }

  // ------------------------------------------------------------ telling

  function say(text) {
    status.textContent = text;
  }

  function tell(text) {
    problem.textContent = text;
    problem.hidden = text === "";
  }

  // What a problem says.
  const explain = (raw) =>
    raw.json().then(({ detail, requestId }) => `${detail ?? "The bank refused this."} ${requestId ? `Request ${requestId}.` : ""}`)
      .catch(() => `The bank answered ${raw.status}.`);

  // ------------------------------------------------------------ views

  // The name of a view and its parameters. Nothing else is asked for: `../` would lead out of the views, to answers that are no part
  // of a page, and the token would go with it.
  const wanted = () => /^[a-z]+(\?.*)?$/.exec(location.hash.slice(1))?.[0] ?? "day";
  const mayAsk = () => !clientId || token !== null;

  function show() {
    clear();
    if (!mayAsk()) return say("Sign in to see a view.");
    const name = wanted().split("?")[0];
    for (const link of document.querySelectorAll("nav a")) {
      if (link.dataset.view === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    say("Loading");
    htmx.ajax("GET", "/console/views/" + wanted(), { source: main, target: "#main", swap: "innerHTML" });
  }

  // The token goes with nothing but views.
  document.addEventListener("htmx:config:request", (event) => {
    const { ctx } = event.detail;
    if (ctx.request.method !== "GET" || !String(ctx.request.action).startsWith("/console/views/")) return event.preventDefault();
    ctx.era = era;
    ctx.request.cache = "no-store";
    ctx.request.credentials = "omit";
    if (token) ctx.request.headers.Authorization = "Bearer " + token;
  });

  // A view that refreshes itself does not while that is off, or nobody sees it.
  document.addEventListener("htmx:before:request", (event) => {
    const isRefresh = event.detail.ctx.sourceElement?.hasAttribute?.("data-live");
    const isOn = live.getAttribute("aria-pressed") === "true" && !document.hidden && mayAsk();
    if (isRefresh && !isOn) event.preventDefault();
  });

  // What is no view is never put into the page, and nothing late is.
  document.addEventListener("htmx:before:response", (event) => {
    const { ctx } = event.detail, { raw } = ctx.response;
    if (ctx.era === era && raw.status === 200) return;
    event.preventDefault();
    if (ctx.era !== era) return;
    say("");
    if (raw.status === 401) {
      return signOut(isAccepted ? "You are signed out. Sign in again to go on."
        : "The bank does not accept the provider's token. It must be an access token for an audience in JwtAudience.");
    }
    if (raw.status === 403) return tell("You may not see this. The console needs a token with payments/inspect, and without the account claim.");
    explain(raw).then(tell);
  });

  document.addEventListener("htmx:error", ({ detail: { ctx } }) => {
    if (ctx?.era === era) [say(""), tell("The bank did not answer. Try again.")];
  });

  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    const heading = main.querySelector("h1");
    document.title = (heading ? heading.textContent + " · " : "") + "Scheduled payments";
    isAccepted = true;
    tell("");
    live.hidden = main.querySelector("[data-live]") === null;
    read.textContent = `Read at ${new Date().toISOString().slice(0, 19)}Z. All times are UTC.`;
    if (ctx.sourceElement?.hasAttribute?.("data-live")) return;
    say("");
    heading?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  });

  // ------------------------------------------------------------ actions

  // The answer is a preview with a form of its own, or what was done. A problem leaves the form, so it can be sent again.
  async function act(form) {
    const warn = (text) => (dialog.open ? ($("dialog-problem").textContent = text) : tell(text));
    if (!mayAsk()) return warn("Sign in to act.");
    const mine = token, turn = (turns += 1), isPreview = form.elements.step?.value !== "do";
    const buttons = form.querySelectorAll("button");
    for (const button of buttons) button.disabled = true;
    warn("");
    try {
      const response = await fetch("/console/actions/" + form.dataset.action, {
        method: "POST", body: new URLSearchParams(new FormData(form)), cache: "no-store", credentials: "omit",
        headers: token ? { Authorization: "Bearer " + token } : {},
      });
      // Another preview was asked for, or another view: this one would take its place.
      if (token !== mine || (isPreview && turn !== turns)) return;
      acted ||= form.elements.step?.value === "do";
      if (response.status === 401) return signOut("You are signed out. Sign in again to go on.");
      if (!response.ok) return warn(await explain(response));
      $("answer").innerHTML = await response.text();
      if (!dialog.open) dialog.showModal();
      $("dialog-title")?.focus();
    } catch {
      warn("There was no answer. Press the button again to see whether it was done: nothing is done twice.");
    } finally {
      for (const button of buttons) button.disabled = false;
    }
  }

  $("close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    $("answer").replaceChildren();
    $("dialog-problem").textContent = "";
    if (acted) show();
    acted = false;
  });

  // A form names an action, or another view.
  document.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.target.dataset.action) return act(event.target);
    const view = event.target.dataset.view ?? "find";
    const next = view + "?" + new URLSearchParams(new FormData(event.target));
    if (wanted() === next) show();
    else location.hash = next;
  });

  // Not by its address, which would name a view.
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });

  live.addEventListener("click", () => {
    const isOn = live.getAttribute("aria-pressed") !== "true";
    live.setAttribute("aria-pressed", String(isOn));
    live.textContent = isOn ? "Refresh: on" : "Refresh: off";
  });
  $("sign-in").addEventListener("click", () => signIn(clientId, "openid payments/inspect"));
  $("sign-in-to-act").addEventListener("click", () => signIn(operateClientId, "openid payments/inspect payments/operate"));
  $("sign-out").addEventListener("click", () => signOut("You are signed out."));
  window.addEventListener("hashchange", () => {
    acted = false;
    turns += 1;
    dialog.close();
    show();
  });

  showSession();
  mayAct(!clientId);
  if (!clientId) document.addEventListener("DOMContentLoaded", show);
  else say("Sign in to see a view.");
})();
