// The console's script: signs in, loads the view that the address names, and keeps it fresh.
//
// The token lives in this page's memory alone: a reload signs in again, and closing the page forgets it. Nothing is stored in
// the browser. A view is named behind the # of the address, which the browser never sends.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const main = $("main"), problem = $("problem"), status = $("status"), attention = $("attention"), dialog = $("dialog");
  const { clientId, operateClientId, authorizeUrl, tokenUrl } = document.body.dataset;
  const callback = location.origin + location.pathname;
  let token = null, acted = false, turns = 0;
  // Whether views are read again by themselves.
  let isLive = true;
  // The troubles as they were last read.
  let attended = null;
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
      given = response.ok ? await response.json() : null;
    } catch {
      // Told below.
    }
    if (channel !== mine) return;
    [token, isAccepted] = [given?.access_token ?? null, false];
    // A provider names the scopes if they are others than those that were asked for.
    may(token === null ? "" : (given.scope ?? scope));
    if (!token) return tell("The provider gave no token. Try again; if that does not help, see the console's client there.");
    say("Signed in.");
    showSession();
    show();
  }

  function signOut(why) {
    [token, channel] = [null, channel?.close() ?? null];
    acted = false;
    dialog.close();
    may("");
    clear();
    document.title = "Scheduled payments";
    showSession();
    tell(why);
  }

  function showSession() {
    $("sign-in").hidden = !clientId || token !== null;
    $("sign-in-to-act").hidden = !operateClientId || token !== null;
    $("sign-out").hidden = !clientId || token === null;
    document.body.toggleAttribute("data-signed-in", !clientId || token !== null);
    $("rights").hidden = token === null;
    $("person").textContent = person() ?? "More";
  }

  // Whom the token names. The page only shows this; the bank reads the token itself.
  function person() {
    try {
      const claims = JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")));
      return String(claims.username ?? claims.sub ?? "").slice(0, 16) || null;
    } catch {
      return null;
    }
  }

  // Forms of actions are shown to whom they may help. The bank decides.
  function may(scope) {
    const acts = scope.includes("payments/operate"), approves = scope.includes("payments/approve");
    document.body.toggleAttribute("data-may-act", acts);
    document.body.toggleAttribute("data-may-approve", approves);
    $("rights").textContent = acts || approves ? `Signed in to ${[acts && "act", approves && "approve"].filter(Boolean).join(" and ")}` : "Signed in to look";
  }

  // Empties the page, and refuses what is under way.
  function clear() {
    era += 1;
    main.replaceChildren();
    tell("");
  }

  // ------------------------------------------------------------ telling

  function say(text) {
    status.textContent = text;
  }

  function tellIn(place, text) {
    place.textContent = text;
    place.hidden = text === "";
  }

  const tell = (text) => tellIn(problem, text);

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
    if (!mayAsk()) return;
    const name = wanted().split("?")[0];
    // The first view has the troubles as cards.
    attention.classList.toggle("full", name === "day");
    attend();
    for (const menu of document.querySelectorAll("details.menu")) menu.open = false;
    for (const link of document.querySelectorAll("nav a[data-view]")) {
      if (link.dataset.view === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    $("find-text").value = name === "find" ? (new URLSearchParams(wanted().slice(5)).get("text") ?? "") : "";
    say("Loading");
    htmx.ajax("GET", "/console/views/" + wanted(), { source: main, target: "#main", swap: "innerHTML" });
  }

  // A view's text; none if it is not given.
  async function read(view) {
    try {
      const headers = token ? { Authorization: "Bearer " + token } : {};
      const response = await fetch("/console/views/" + view, { headers, cache: "no-store", credentials: "omit" });
      return response.ok ? await response.text() : null;
    } catch {
      return null;
    }
  }

  // Reads the troubles, and puts their numbers beside the views that mend them.
  async function attend() {
    const mine = era;
    let text = await read("attention");
    if (era !== mine) return;
    attention.hidden = false;
    // What is unchanged stays, with the focus in it.
    text ??= '<p id="attn" class="b">Troubles unknown: they could not be read</p>';
    if (attended === text) return;
    attention.innerHTML = attended = text;
    const items = [...attention.querySelectorAll("li[data-view]")];
    for (const count of document.querySelectorAll("[data-count], [data-count-all]")) {
      const all = count.hasAttribute("data-count-all") ? items : items.filter((item) => item.dataset.view === count.dataset.count);
      count.hidden = all.length === 0;
      count.textContent = all.length;
      count.classList.toggle("now", all.some((item) => item.classList.contains("now")));
      count.title = all.map((item) => item.querySelector("b").textContent).join(", ");
    }
  }

  setInterval(() => isLive && !document.hidden && mayAsk() && attend(), 15_000);

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
    if (isRefresh && !(isLive && !document.hidden && mayAsk())) event.preventDefault();
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
    showRefresh();
    select();
    if (ctx.sourceElement?.hasAttribute?.("data-live")) return;
    say("");
    heading?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  });

  function showRefresh() {
    for (const button of main.querySelectorAll("[data-refresh]")) {
      button.setAttribute("aria-pressed", String(isLive));
      button.textContent = isLive ? "Refresh: on" : "Refresh: off";
    }
  }

  // How many rows of a form are selected, and the sums of their amounts by currency, which are in minor units.
  function select() {
    for (const form of main.querySelectorAll("form:has(.pick)")) {
      const boxes = [...form.querySelectorAll("tbody :checked")], sums = new Map();
      for (const { dataset: { minor, decimals, currency } } of boxes) {
        const [sum] = sums.get(currency) ?? [0n];
        sums.set(currency, [sum + BigInt(minor), Number(decimals)]);
      }
      const major = (sum, decimals) => {
        const digits = String(sum).padStart(decimals + 1, "0"), whole = digits.slice(0, digits.length - decimals);
        return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (decimals ? "." + digits.slice(-decimals) : "");
      };
      form.querySelector("[data-selected]").textContent = `${boxes.length} selected`;
      form.querySelector("[data-sums]").textContent = [...sums].map(([currency, [sum, decimals]]) => `${major(sum, decimals)} ${currency}`).join(", ");
    }
  }

  main.addEventListener("change", ({ target }) => {
    if (target.matches("thead [type=checkbox]")) {
      for (const box of target.form.querySelectorAll("tbody [type=checkbox]")) box.checked = target.checked;
    }
    if (target.matches("[type=checkbox]")) select();
  });

  document.addEventListener("click", async ({ target }) => {
    const button = target.closest("button");
    if (button?.matches("[data-refresh]")) [isLive] = [!isLive, setTimeout(showRefresh)];
    if (button?.matches("[data-close]")) dialog.close();
    if (button?.matches("[data-clear]")) {
      for (const box of button.form.querySelectorAll(":checked")) box.checked = false;
      select();
    }
    if (button?.matches("[data-copy]")) {
      const is = await navigator.clipboard.writeText(button.dataset.copy).then(() => "Copied", () => "Not copied");
      button.textContent = is;
      say(is);
    }
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(target)) menu.open = false;
    }
  });

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("input, select, textarea");
    if (event.key === "/" && !isTyping && !dialog.open && mayAsk()) {
      event.preventDefault();
      $("find-text").focus();
    }
  });

  // ------------------------------------------------------------ actions

  // The answer is a preview with a form of its own, or what was done. A problem leaves the form, so it can be sent again.
  async function act(form) {
    const warn = (text) => (dialog.open ? tellIn($("dialog-problem"), text) : tell(text));
    if (!mayAsk()) return warn("Sign in to act.");
    const { action, approval } = form.dataset, path = action ? "actions/" + action : "approvals/" + approval;
    const isPreview = action ? form.elements.step?.value !== "do" : approval === "look";
    const mine = token, turn = (turns += 1);
    const buttons = form.querySelectorAll("button");
    const fields = new URLSearchParams(new FormData(form)), selected = fields.getAll("payments");
    // The ids of a selection are the lines of one field.
    if (selected.length > 0) fields.set("payments", selected.join("\n"));
    for (const button of buttons) button.disabled = true;
    warn("");
    try {
      const response = await fetch("/console/" + path, {
        method: "POST", body: fields, cache: "no-store", credentials: "omit",
        headers: token ? { Authorization: "Bearer " + token } : {},
      });
      // Another preview was asked for, or another view: this one would take its place.
      if (token !== mine || (isPreview && turn !== turns)) return;
      acted ||= !isPreview;
      if (response.status === 401) return signOut("You are signed out. Sign in again to go on.");
      if (!response.ok) return warn(await explain(response));
      $("answer").innerHTML = await response.text();
      if (!dialog.open) dialog.showModal();
      $("dialog-title")?.focus();
      follow($("answer").querySelector("[data-follow]"));
    } catch {
      warn("There was no answer. Press the button again to see whether it was done: nothing is done twice.");
    } finally {
      for (const button of buttons) button.disabled = false;
    }
  }

  // Reads the outcome of a run that was started until it has one.
  async function follow(place) {
    if (!place?.isConnected) return;
    const text = await read(place.dataset.follow);
    if (!place.isConnected) return;
    // What is unchanged stays, so that screen readers say nothing twice.
    if (text && !(text.includes("data-pending") && place.querySelector("[data-pending]"))) place.innerHTML = text;
    if (!text || text.includes("data-pending")) setTimeout(follow, 3_000, place);
  }

  dialog.addEventListener("close", () => {
    $("answer").replaceChildren();
    tellIn($("dialog-problem"), "");
    if (acted) show();
    acted = false;
  });

  // A form names an action, or another view.
  document.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.target.dataset.action || event.target.dataset.approval) return act(event.target);
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

  $("sign-in").addEventListener("click", () => signIn(clientId, "openid payments/inspect"));
  $("sign-in-to-act").addEventListener("click", () => signIn(operateClientId, "openid payments/inspect payments/operate payments/approve"));
  $("sign-out").addEventListener("click", () => signOut("You are signed out."));
  window.addEventListener("hashchange", () => {
    acted = false;
    turns += 1;
    dialog.close();
    show();
  });

  showSession();
  may(clientId ? "" : "payments/operate");
  if (!clientId) document.addEventListener("DOMContentLoaded", show);
})();
