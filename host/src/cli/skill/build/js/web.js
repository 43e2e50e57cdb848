// Larger parts of the web. Only what the project names gets into its component.

import URL from "core-js-pure/actual/url/index.js";
import URLSearchParams from "core-js-pure/actual/url-search-params/index.js";
import structuredClone from "core-js-pure/actual/structured-clone.js";

export { URL, URLSearchParams, structuredClone };
