"""Figures as SVG: lines, bars, points in the plane."""
from html import escape

COLOURS = ["#3b82c4", "#d9622b", "#2f9e6e", "#b0529c", "#b8901f", "#7a8794", "#c23b3b"]
WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 56, 150, 44, 46


def frame(title, x_name, content, names):
    """Title, axis and the names of the series around what is drawn."""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             f'<text x="{LEFT}" y="24" font-size="14" font-weight="600">{escape(title)}</text>',
             f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle" fill="#555">{escape(x_name)}</text>']
    for number, name in enumerate(names):
        y = TOP + 8 + 20 * number
        parts.append(f'<circle cx="{WIDTH - RIGHT + 18}" cy="{y}" r="5" fill="{COLOURS[number % len(COLOURS)]}"/>'
                     f'<text x="{WIDTH - RIGHT + 28}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join([*parts, *content, "</svg>", ""])


def round_step(low, high):
    rough = max((high - low) / 5, 1e-12)
    power = 1.0
    while power > rough:
        power /= 10
    while power * 10 <= rough:
        power *= 10
    return next(times * power for times in (1, 2, 5, 10) if times * power >= rough * 0.999)


def axis(low, high):
    """Round values that hold a range, and where they stand."""
    step = round_step(low, high if high > low else low + 1)
    first, last = int(low // step), -int(-high // step)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def heights(values):
    ticks = axis(min(values), max(values))

    def place(value):
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    rules = [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{place(tick):.1f}" y2="{place(tick):.1f}" stroke="#e4e6ea"/>'
             f'<text x="{LEFT - 8}" y="{place(tick) + 4:.1f}" text-anchor="end" fill="#555">{tick:,.6g}</text>' for tick in ticks]
    return place, rules


def lines(title, x_name, series):
    """`series`: a name, and points (x, y)."""
    points = [point for drawn in series.values() for point in drawn]
    least, most = min(point[0] for point in points), max(point[0] for point in points)
    y, content = heights([point[1] for point in points])

    def x(value):
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - least) / max(most - least, 1e-12)

    for tick in axis(least, most):
        if least <= tick <= most:
            content.append(f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#555">{tick:,.6g}</text>')
    for number, drawn in enumerate(series.values()):
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in drawn)
        content.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="2"/>')
    return frame(title, x_name, content, series)


def bars(title, x_name, names, series):
    """`series`: a name, and a value for each of `names`."""
    y, content = heights([0.0, *(value for values in series.values() for value in values)])
    slot = (WIDTH - LEFT - RIGHT) / len(names)
    width = 0.8 * slot / len(series)
    for place, name in enumerate(names):
        begin = LEFT + slot * place + 0.1 * slot
        content.append(f'<text x="{begin + 0.4 * slot:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#555">{escape(str(name))}</text>')
        for number, values in enumerate(series.values()):
            top = y(values[place])
            content.append(f'<rect x="{begin + width * number:.1f}" y="{top:.1f}" width="{max(width - 1, 0.5):.1f}" '
                           f'height="{HEIGHT - BOTTOM - top:.1f}" fill="{COLOURS[number % len(COLOURS)]}"/>')
    return frame(title, x_name, content, series)


def scatter(title, series):
    """`series`: a name, and points (x, y, what it is)."""
    points = [point for drawn in series.values() for point in drawn]
    spans = [(min(point[axis_] for point in points), max(point[axis_] for point in points)) for axis_ in (0, 1)]

    def place(value, span, begin, end):
        return begin + (end - begin) * (value - span[0]) / max(span[1] - span[0], 1e-12)

    content = []
    for number, drawn in enumerate(series.values()):
        for a, b, name in drawn:
            x, y = place(a, spans[0], LEFT, WIDTH - RIGHT), place(b, spans[1], HEIGHT - BOTTOM, TOP)
            content.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[number % len(COLOURS)]}" fill-opacity="0.75">'
                           f'<title>{escape(name)}</title></circle>')
    return frame(title, "", content, series)
