// A form above a picture. Each control holds the place of what is chosen among its values.

function makeControl({ name, menu: isMenu, values }) {
  const row = document.createElement("div");
  const label = row.appendChild(document.createElement("label"));
  label.appendChild(document.createElement("span")).textContent = name;
  if (isMenu) {
    const menu = label.appendChild(document.createElement("select"));
    values.forEach((value, place) => menu.add(new Option(value, place)));
    return { row, input: menu, show: (place) => { menu.value = place; } };
  }
  const slider = label.appendChild(document.createElement("input"));
  Object.assign(slider, { type: "range", min: 0, max: values.length - 1 });
  const shown = row.appendChild(document.createElement("span")); // outside the label: it is no part of the name
  const show = (place) => {
    slider.value = place;
    slider.setAttribute("aria-valuetext", values[place]);
    shown.textContent = values[place];
  };
  return { row, input: slider, show };
}

function render({ model, el }) {
  el.classList.add("dmls2r-explorer");
  const form = el.appendChild(document.createElement("div"));
  const image = el.appendChild(document.createElement("img"));
  const sentence = el.appendChild(document.createElement("p"));
  sentence.setAttribute("role", "status");

  const controls = {};
  for (const made of model.get("controls")) {
    const control = (controls[made.name] = makeControl(made));
    form.append(control.row);
    control.input.addEventListener("input", () => {
      model.set("places", { ...model.get("places"), [made.name]: Number(control.input.value) });
      model.save_changes();
    });
  }
  // JupyterLab takes an arrow key and moves to another cell, unless what has the focus says that it is its own.
  // It looks at keys in the document, so the window can say so before; Ctrl+S and the like it may have.
  const claimKeys = (event) => {
    const isOwn = !event.ctrlKey && !event.metaKey;
    for (const { input } of Object.values(controls)) input.toggleAttribute("data-lm-suppress-shortcuts", isOwn);
  };
  window.addEventListener("keydown", claimKeys, true);
  const showPlaces = () => {
    for (const [name, place] of Object.entries(model.get("places"))) controls[name].show(place);
  };
  const showPicture = () => {
    image.src = model.get("picture");
    image.alt = sentence.textContent = model.get("sentence");
  };
  model.on("change:places", showPlaces);
  model.on("change:picture change:sentence", showPicture);
  showPlaces();
  showPicture();
  return () => {
    window.removeEventListener("keydown", claimKeys, true);
    model.off("change:places", showPlaces);
    model.off("change:picture change:sentence", showPicture);
  };
}

export default { render };
