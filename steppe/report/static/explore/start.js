"use strict";
// A page shows the module that is loaded beside plot.js.
(() => {
  const { plot, ...rest } = globalThis.steppe;
  Object.values(rest)[0].mount(document.querySelector("main"));
})();
