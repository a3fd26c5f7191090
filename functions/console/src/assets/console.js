// The console's script: signs in, loads the view that the address names, and keeps it fresh.
//
// The token lives in this page's memory alone: a reload signs in again, and closing the page forgets it. Nothing is stored in
// the browser. A view is named behind the # of the address, which the browser never sends.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const main = $("main"), problem = $("problem"), status = $("status"), live = $("live"), dialog = $("dialog");
  const { clientId, authorizeUrl, tokenUrl } = document.body.dataset;
  const callback = location.origin + location.pathname;
  const scope = "openid payments/inspect payments/operate";
  let token = null, acted = false;

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
  async function signIn() {
    const verifier = random(), state = random();
    // Opened before anything is awaited: later, browsers take it for an advertisement.
    const popup = window.open("", "_blank", "popup,width=480,height=640");
    const challenge = base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
    const url = new URL(authorizeUrl, location.href);
    const query = {
      response_type: "code", client_id: clientId, redirect_uri: callback, scope, state,
      code_challenge: challenge, code_challenge_method: "S256",
    };
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const channel = new BroadcastChannel("console-sign-in");
    const answer = new Promise((resolve) => {
      channel.onmessage = ({ data }) => data.state === state && resolve(data);
    });
    if (!popup) return tell("The browser blocked the window in which you sign in. Allow it for this site, and try again.");
    popup.location = url;
    say("Sign in in the other window.");
    const { code, error } = await answer;
    channel.close();
    if (!code) return tell(`The provider did not sign you in: ${error ?? "it sent no code"}.`);
    const form = new URLSearchParams({
      grant_type: "authorization_code", code, client_id: clientId, redirect_uri: callback, code_verifier: verifier,
    });
    try {
      const response = await fetch(tokenUrl, { method: "POST", body: form, cache: "no-store", credentials: "omit" });
      token = response.ok ? ((await response.json()).access_token ?? null) : null;
    } catch {
      token = null;
    }
    if (!token) return tell("The provider gave no token. Try again; if that does not help, see the console's client there.");
    say("Signed in.");
    showSession();
    show();
  }

  function signOut(why) {
    token = null;
    acted = false;
    dialog.close();
    main.replaceChildren();
    document.title = "Scheduled payments";
    showSession();
    say(why);
  }

  function showSession() {
    $("sign-in").hidden = !clientId || token !== null;
    $("sign-out").hidden = !clientId || token === null;
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
    if (!mayAsk()) return say("Sign in to see a view.");
    tell("");
    htmx.ajax("GET", "/console/views/" + wanted(), { target: "#main", swap: "innerHTML" });
  }

  document.addEventListener("htmx:config:request", ({ detail: { ctx } }) => {
    ctx.request.cache = "no-store";
    ctx.request.credentials = "omit";
    if (token) ctx.request.headers.Authorization = "Bearer " + token;
  });

  // A view that refreshes itself does not while it is paused, or nobody sees it.
  document.addEventListener("htmx:before:request", (event) => {
    const isRefresh = event.detail.ctx.sourceElement?.hasAttribute?.("data-live");
    const isOn = live.getAttribute("aria-pressed") === "true" && !document.hidden && mayAsk();
    if (isRefresh && !isOn) event.preventDefault();
  });

  // What is no view is never put into the page.
  document.addEventListener("htmx:before:response", (event) => {
    const { raw } = event.detail.ctx.response;
    if (raw.status === 200) return;
    event.preventDefault();
    if (raw.status === 401) return signOut("You are signed out. Sign in again to go on.");
    explain(raw).then(tell);
  });

  document.addEventListener("htmx:error", () => tell("The bank did not answer. The view is as it was; try again."));

  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    const heading = main.querySelector("h1");
    document.title = (heading ? heading.textContent + " · " : "") + "Scheduled payments";
    const name = wanted().split("?")[0];
    for (const link of document.querySelectorAll("nav a")) {
      if (link.dataset.view === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (ctx.sourceElement?.hasAttribute?.("data-live")) return;
    tell("");
    say("");
    heading?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  });

  // ------------------------------------------------------------ actions

  // The answer is a preview with a form of its own, or what was done. A problem leaves the form, so it can be sent again.
  async function act(form) {
    const warn = (text) => (dialog.open ? ($("dialog-problem").textContent = text) : tell(text));
    if (!mayAsk()) return warn("Sign in to act.");
    const buttons = form.querySelectorAll("button");
    for (const button of buttons) button.disabled = true;
    warn("");
    try {
      const response = await fetch("/console/actions/" + form.dataset.action, {
        method: "POST", body: new URLSearchParams(new FormData(form)), cache: "no-store", credentials: "omit",
        headers: token ? { Authorization: "Bearer " + token } : {},
      });
      acted ||= form.elements.step?.value === "do";
      if (response.status === 401) return signOut("You are signed out. Sign in again to go on.");
      if (!response.ok) return warn(await explain(response));
      $("answer").innerHTML = await response.text();
      if (!dialog.open) dialog.showModal();
      $("dialog-title")?.focus();
    } catch {
      warn("The bank did not answer. Send it again: what was done is not done twice.");
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
    live.textContent = isOn ? "Live" : "Paused";
  });
  $("sign-in").addEventListener("click", signIn);
  $("sign-out").addEventListener("click", () => signOut("You are signed out."));
  window.addEventListener("hashchange", () => {
    acted = false;
    dialog.close();
    show();
  });

  showSession();
  if (!clientId) document.addEventListener("DOMContentLoaded", show);
  else say("Sign in to see a view.");
})();
