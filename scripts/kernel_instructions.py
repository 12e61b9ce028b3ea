#!/usr/bin/env python3
"""The transform's machine code as C: kernel_instructions.py LISTING >kernels.c

LISTING is what `nvdisasm -c` prints of transform_cuda.cu compiled for sm_90. Each
kernel becomes a function over a warp (scripts/kernel_instructions.c has the types):
as many lanes as are at the lowest address do that instruction, and it is counted. An
instruction that is not known here is an error, as is local memory.
"""
import re
import struct
import sys

# All but those for any order of axes.
KERNELS = r"transform_way[0-3]"


def half(text):
    return struct.unpack("<H", struct.pack("<e", float(text)))[0]


class Instruction:
    def __init__(self, address, guard, name, operands):
        self.address = address
        self.guard = guard
        self.name = name
        self.parts = name.split(".")
        self.operands = operands

    def has(self, part):
        return part in self.parts

    def fail(self, why="unknown"):
        text = "%s %s" % (self.name, ", ".join(self.operands))
        sys.exit("kernel_instructions.py: %s: %s" % (why, text))


def parse(lines):
    """The kernels of a listing: name, instructions, and labels' addresses."""
    kernels = []
    waiting = []
    for line in lines:
        found = re.match(r"\.text\.(\w+):", line)
        if found:
            kernels.append((found.group(1), [], {}))
            continue
        found = re.match(r"\s*(\.L_x_\d+):", line)
        if found and kernels:
            waiting.append(found.group(1))
            continue
        found = re.match(
            r"\s+/\*([0-9a-f]{4,5})\*/\s+(?:@(!?U?P[0-6T])\s+)?([A-Z][\w.]*)\s*(.*?)\s*;",
            line,
        )
        if not found or not kernels:
            continue
        address = int(found.group(1), 16)
        for label in waiting:
            kernels[-1][2][label] = address
        waiting = []
        operands = [x for x in re.split(r",\s*(?![^\[]*\])", found.group(4)) if x]
        operands = [x.strip().replace(".reuse", "") for x in operands]
        kernels[-1][1].append(
            Instruction(address, found.group(2), found.group(3), operands)
        )
    return kernels


def predicate(text):
    inverted = text.startswith("!")
    name = text.lstrip("!")
    if name in ("PT", "UPT"):
        value = "1"
    elif name.startswith("UP"):
        value = "w->up[%s]" % name[2:]
    else:
        value = "w->p[%s][i]" % name[1:]
    return "!" + value if inverted else value


def set_predicate(text, value):
    if text in ("PT", "UPT"):
        return ""
    return "%s = %s;" % (predicate(text), value)


def plain(text):
    """A register, constant or number without signs, as 32 bits."""
    if text in ("RZ", "URZ", "SRZ"):
        return "0u"
    found = re.match(r"(U?R)(\d+)(?:\.B([0-3])|\.H([01])_H[01]|\.64|\.U32)?$", text)
    if found:
        kind, number, byte, part = found.groups()
        value = "w->ur[%s]" % number if kind == "UR" else "w->r[%s][i]" % number
        if byte:
            value = "(%s >> %d & 0xff)" % (value, 8 * int(byte))
        if part:
            value = "(%s >> %d & 0xffff)" % (value, 16 * int(part))
        return value
    found = re.match(r"c\[0x0\]\[(0x[0-9a-f]+)\]$", text)
    if found:
        return "constant(w, %s)" % found.group(1)
    if re.match(r"0x[0-9a-f]+$", text):
        return text + "u"
    sys.exit("kernel_instructions.py: unknown operand " + text)


def integer(text):
    if text.startswith("-"):
        return "(0u - %s)" % plain(text[1:])
    if text.startswith("~"):
        return "(~%s)" % plain(text[1:])
    return plain(text)


def addend(text):
    """For sums with carries: what is subtracted is all ones' complement plus 1."""
    if text.startswith("-") and re.match(r"-(U?R\d|c\[)", text):
        return "(((uint64_t)1 << 32) - %s)" % plain(text[1:])
    return "(uint64_t)%s" % integer(text)


def wide(text):
    """A pair of registers."""
    if text in ("RZ", "URZ"):
        return "(uint64_t)0"
    found = re.match(r"(-?)(U?R)(\d+)(\.64)?$", text)
    if not found:
        return "(uint64_t)%s" % integer(text)
    sign, kind, number, _ = found.groups()
    form = "w->ur[%d]" if kind == "UR" else "w->r[%d][i]"
    return "(%s((uint64_t)%s << 32 | %s))" % (
        sign,
        form % (int(number) + 1),
        form % int(number),
    )


def real(text):
    if re.match(r"[-+]?(\d|INF|QNAN)", text) and not text.startswith("0x"):
        return "real(0x%xu)" % struct.unpack("<I", struct.pack("<f", float(text)))[0]
    sign = text.startswith("-")
    text = text.lstrip("-")
    size = text.startswith("|")
    value = "real(%s)" % plain(text.strip("|"))
    if size:
        value = "fabsf(%s)" % value
    return "-" + value if sign else value


def store(text, value, offset=0):
    if text in ("RZ", "URZ"):
        return ""
    found = re.match(r"(U?R)(\d+)", text)
    number = int(found.group(2)) + offset
    place = "w->ur[%d]" if found.group(1) == "UR" else "w->r[%d][i]"
    return "%s = %s;" % (place % number, value)


def store_wide(text, value):
    return "x = %s; %s %s" % (
        value,
        store(text, "(uint32_t)x"),
        store(text, "(uint32_t)(x >> 32)", 1),
    )


def is_predicate(text):
    return re.match(r"!?U?P[0-6T]$", text) is not None


def split_carries(operands):
    """The destination, the predicates after it, the rest."""
    carries = []
    rest = operands[1:]
    while rest and is_predicate(rest[0]):
        carries.append(rest[0])
        rest = rest[1:]
    return operands[0], carries, rest


def add(ins):
    to, carries, rest = split_carries(ins.operands)
    terms = [addend(x) for x in rest[:3]]
    if ins.has("X"):
        terms += [predicate(x) for x in rest[3:]]
    code = "x = %s; %s" % (" + ".join(terms), store(to, "(uint32_t)x"))
    for i, carry in enumerate(carries):
        code += set_predicate(carry, "x >> 32 > %d" % i)
    return code


def multiply(ins):
    to, carries, (a, b, c, *more) = split_carries(ins.operands)
    is_signed = not ins.has("U32")
    cast = "(uint64_t)(int64_t)(int32_t)" if is_signed else "(uint64_t)"
    product = "%s%s * %s%s" % (cast, integer(a), cast, integer(b))
    if ins.has("WIDE"):
        code = "y = %s; " % product + store_wide(to, "y + %s" % wide(c))
        return code + "".join(set_predicate(p, "x < y") for p in carries)
    if ins.has("HI"):
        if c not in ("RZ", "URZ"):
            ins.fail()
        return store(to, "(uint32_t)((%s) >> 32)" % product)
    carry = " + " + predicate(more[0]) if ins.has("X") else ""
    return store(to, "%s * %s + %s%s" % (integer(a), integer(b), integer(c), carry))


def shift(ins):
    to, low, by, high = ins.operands[:4]
    by = "(%s & 63)" % integer(by)
    both = "((uint64_t)%s << 32 | %s)" % (integer(high), integer(low))
    kind = ".".join(ins.parts[1:])
    if kind == "R.U32.HI":
        value = "(uint32_t)((uint64_t)%s >> %s)" % (integer(high), by)
    elif kind == "R.S32.HI":
        value = "(uint32_t)((int64_t)(int32_t)%s >> %s)" % (integer(high), by)
    elif kind == "R.U64":
        value = "(uint32_t)(%s >> %s)" % (both, by)
    elif kind == "L.U64.HI":
        value = "(uint32_t)(%s << %s >> 32)" % (both, by)
    elif kind == "L.U32":
        value = "(uint32_t)((uint64_t)%s << %s)" % (integer(low), by)
    else:
        ins.fail()
    return store(to, value)


def shift_add(ins):
    to, carries, rest = split_carries(ins.operands)
    if not ins.has("HI"):
        a, b, by = rest
        sum_of = "(uint64_t)(uint32_t)((uint64_t)%s << %s) + %s" % (
            integer(a), by, addend(b))
        code = "x = %s; %s" % (sum_of, store(to, "(uint32_t)x"))
        return code + "".join(set_predicate(p, "x >> 32 > 0") for p in carries)
    if ins.has("SX32"):
        a, b, by, *more = rest
        both = "(uint64_t)(int64_t)(int32_t)%s" % integer(a)
    else:
        a, b, high, by, *more = rest
        both = "((uint64_t)%s << 32 | %s)" % (integer(high), integer(a))
    carry = " + " + predicate(more[0]) if ins.has("X") else ""
    return store(to, "(uint32_t)(%s << %s >> 32) + %s%s" % (both, by, integer(b), carry))


def logic(ins):
    operands = list(ins.operands)
    to = operands.pop(0) if is_predicate(operands[0]) else None
    register, a, b, c, table = operands[:5]
    value = "logic(%s, %s, %s, %s)" % (integer(a), integer(b), integer(c), table)
    code = "t = %s; %s" % (value, store(register, "t"))
    return code + (set_predicate(to, "t != 0") if to else "")


def predicate_logic(ins):
    a, b, c = [predicate(x) for x in ins.operands[2:5]]
    code = "t = %s << 2 | %s << 1 | %s;" % tuple("(%s)" % x for x in (a, b, c))
    for to, table in zip(ins.operands[:2], ins.operands[5:7]):
        code += set_predicate(to, "%s >> t & 1" % table)
    return code


COMPARISONS = {"LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "EQ": "==", "NE": "!="}


def compare(ins):
    first, second, a, b, other = ins.operands[:5]
    sign = COMPARISONS[ins.parts[1]]
    cast = "" if ins.has("U32") else "(int32_t)"
    a, b = cast + integer(a), cast + integer(b)
    value = "%s %s %s" % (a, sign, b)
    if ins.has("EX"):
        lower = predicate(ins.operands[5])
        if ins.parts[1] == "NE":
            value = "(%s || %s)" % (value, lower)
        elif ins.parts[1] == "EQ":
            value = "(%s && %s)" % (value, lower)
        else:
            value = "(%s %s %s || (%s == %s && %s))" % (a, sign[0], b, a, b, lower)
    if ins.has("XOR"):
        ins.fail()
    join = "||" if ins.has("OR") else "&&"
    code = "t = %s; y = %s;" % (value, predicate(other))
    return (code + set_predicate(first, "t %s y" % join)
            + set_predicate(second, "!t %s y" % join))


def least(ins):
    if ins.has("S16x2"):
        to, a, b, which = ins.operands
        return store(to, "least_halves(%s, %s, %s)" % (
            integer(a), integer(b), predicate(which)))
    cast = "" if ins.has("U32") else "(int32_t)"
    to, *values, which = ins.operands
    values = [cast + integer(x) for x in values]
    name = ins.parts[0].lstrip("U")
    if name == "VIADDMNMX":
        values = ["%s(%s + %s)" % (cast, values[0], values[1]), values[2]]
    code = "{ %s m = %s;" % ("uint32_t" if not cast else "int32_t", values[0])
    for value in values[1:]:
        code += " if (%s ? %s < m : %s > m) m = %s;" % (
            predicate(which), value, value, value)
    return code + store(to, "(uint32_t)m") + "}"


def load_constant(ins):
    to, place = ins.operands
    found = re.search(r"\[(0x[0-9a-f]+|RZ)\]$", place).group(1)
    offset = 0 if found == "RZ" else int(found, 16)
    words = 2 if ins.has("64") else 1
    return "".join(
        store(to, "constant(w, 0x%x)" % (offset + 4 * k), k) for k in range(words))


SIZES = {"U8": 1, "U16": 2, "64": 8, "128": 16}


def memory(ins):
    is_store = ins.parts[0] == "STG"
    register, place = ins.operands[::-1] if is_store else ins.operands
    found = re.match(r"desc\[UR\d+\]\[(U?R\d+)(?:\.64)?(?:\+(-?0x[0-9a-f]+))?\]$", place)
    if not found:
        ins.fail()
    size = next((SIZES[x] for x in ins.parts if x in SIZES), 4)
    address = "%s + (uint64_t)(%s)" % (wide(found.group(1)), found.group(2) or 0)
    code = "a = %s;" % address
    words = max(size // 4, 1)
    if not is_store:
        code += "load(w, v, a, %d);" % size
        return code + "".join(store(register, "v[%d]" % k, k) for k in range(words))
    number = int(register[1:]) if register != "RZ" else None
    for k in range(words):
        code += "v[%d] = %s;" % (k, "0" if number is None
                                 else "w->r[%d][i]" % (number + k))
    return code + "save(w, v, a, %d);" % size


def near_memory(ins):
    """The block's own, whose addresses have 32 bits."""
    is_store = ins.parts[0] == "STS"
    register, place = ins.operands[::-1] if is_store else ins.operands
    if not re.match(r"\[(U?R\d+|\+?-?0x[0-9a-f]+)+\]$", place):
        ins.fail()
    terms = re.findall(r"-?0x[0-9a-f]+|U?R\d+", place)
    address = " + ".join(
        "(uint32_t)(%s)" % x if "0x" in x else plain(x) for x in terms)
    size = next((SIZES[x] for x in ins.parts if x in SIZES), 4)
    words = max(size // 4, 1)
    code = "a = (uint32_t)(%s);" % address
    if not is_store:
        code += "load_near(w, v, a, %d);" % size
        return code + "".join(store(register, "v[%d]" % k, k) for k in range(words))
    number = int(register[1:]) if register != "RZ" else None
    for k in range(words):
        code += "v[%d] = %s;" % (k, "0" if number is None
                                 else "w->r[%d][i]" % (number + k))
    return code + "save_near(w, v, a, %d);" % size


def vote(ins):
    """Whether a predicate holds in all lanes that are there."""
    if not ins.has("ALL") or len(ins.operands) != 2:
        ins.fail()
    to, of = ins.operands
    return ("t = 1; for (int k = 0; k < LANE_COUNT; k++) "
            "t &= w->at[k] != w->pc || %s;" % predicate(of).replace("[i]", "[k]")
            + set_predicate(to, "t"))


def special(ins):
    which = ins.operands[1].replace(".", "_")
    return store(ins.operands[0], "special(w, %s, i)" % which)


def pack_halves(ins):
    to, high, low = ins.operands
    kind = "bfloat16" if ins.has("BF16") else "float16"
    return store(to, "(uint32_t)%s(%s) << 16 | %s(%s)" % (
        kind, real(high), kind, real(low)))


def to_real(ins):
    to, value = ins.operands
    if ins.parts[0] == "I2F" and not ins.has("U8") and not ins.has("U16"):
        ins.fail()
    mask = " & 0xff" if ins.has("U8") else " & 0xffff" if ins.has("U16") else ""
    return store(to, "bits((float)(%s%s))" % (integer(value), mask))


def halves(ins):
    """Two halves of a number by way of a product with 0."""
    to, a, b, high, low = ins.operands
    if {a.lstrip("-"), b} != {"RZ"}:
        ins.fail()
    return store(to, "0x%xu" % (half(high) << 16 | half(low)))


def predicates_to_register(ins):
    to, _, from_, mask = ins.operands
    return "t = 0; for (int k = 0; k < 7; k++) t |= (uint32_t)w->p[k][i] << k; " + store(
        to, "(%s & ~%s) | (t & %s)" % (integer(from_), mask, mask))


def register_to_predicates(ins):
    _, from_, mask = ins.operands
    return "".join("w->p[%d][i] = %s >> %d & 1;" % (k, integer(from_), k)
                   for k in range(7) if int(mask, 16) >> k & 1)


def translate(ins):
    """Instructions that do not jump, as statements for lane i."""
    name = ins.parts[0].lstrip("U")
    name = "VOTE" if name == "VOTEU" else name
    a = ins.operands
    if name == "IADD3":
        return add(ins)
    if name == "IMAD":
        return multiply(ins)
    if name == "SHF":
        return shift(ins)
    if name == "LEA":
        return shift_add(ins)
    if name == "LOP3":
        return logic(ins)
    if name == "PLOP3":
        return predicate_logic(ins)
    if name == "ISETP":
        return compare(ins)
    if name in ("VIMNMX", "VIMNMX3", "VIADDMNMX"):
        return least(ins)
    if name == "LDC":
        return load_constant(ins)
    if name in ("LDG", "STG"):
        return memory(ins)
    if name in ("LDS", "STS"):
        return near_memory(ins)
    if name == "VOTE":
        return vote(ins)
    if name in ("S2R", "S2UR"):
        return special(ins)
    if name == "F2FP":
        return pack_halves(ins)
    if name in ("I2F", "I2FP"):
        return to_real(ins)
    if name == "HFMA2":
        return halves(ins)
    if name == "P2R":
        return predicates_to_register(ins)
    if name == "R2P":
        return register_to_predicates(ins)
    if name in ("MOV", "R2UR"):
        return store(a[0], integer(a[1]))
    if name == "VIADD":
        return store(a[0], "%s + %s" % (integer(a[1]), integer(a[2])))
    if name in ("SEL", "FSEL"):
        return store(a[0], "%s ? %s : %s" % (predicate(a[3]), integer(a[1]), integer(a[2])))
    if name == "CS2R":
        return store(a[0], "0") + ("" if ins.has("32") else store(a[0], "0", 1))
    if name == "PRMT":
        return store(a[0], "permute(%s, %s, %s)" % tuple(integer(x) for x in a[1:4]))
    if name == "FADD":
        return store(a[0], "bits(%s + %s)" % (real(a[1]), real(a[2])))
    if name == "FMUL":
        return store(a[0], "bits(%s * %s)" % (real(a[1]), real(a[2])))
    if name in ("NOP", "BSSY", "BSYNC", "BREAK", "WARPSYNC"):
        return ""
    ins.fail()


def emit(name, instructions, labels):
    print("static void %s(struct warp *w)\n{" % name)
    print("uint32_t t, v[4]; uint64_t a, x, y;")
    print("(void)t; (void)v; (void)a; (void)x; (void)y;")
    print("while (next(w)) switch (w->pc) {")
    for ins in instructions:
        guard = predicate(ins.guard) if ins.guard else "1"
        # What all lanes share is computed once.
        is_uniform = ins.parts[0].startswith("U") or ins.parts[0] in ("R2UR", "S2UR", "VOTEU")
        lanes = "LANE" if is_uniform else "LANES"
        print("case 0x%x: %s(%s) {" % (ins.address, lanes, guard))
        if ins.parts[0] == "EXIT":
            print("w->at[i] = DONE; continue;")
        elif ins.parts[0] == "BRA":
            label = re.search(r"\.L_x_\d+", ins.operands[-1]).group(0)
            taken = " && ".join(predicate(x) for x in ins.operands[:-1]) or "1"
            print("if (%s) { w->at[i] = 0x%x; continue; }" % (taken, labels[label]))
        else:
            print(translate(ins))
        print("} PASS; break; /* %s %s */" % (ins.name, ", ".join(ins.operands)))
    print("default: abort();\n}\n}")


def main():
    with open(sys.argv[1], encoding="utf-8") as listing:
        kernels = parse(listing)
    if not kernels:
        sys.exit("kernel_instructions.py: no kernels in " + sys.argv[1])
    kernels = [x for x in kernels if re.search(KERNELS, x[0])]

    for kernel in kernels:
        emit(*kernel)
    print("static const struct kernel kernels[] = {")
    for name, _, _ in kernels:
        print('    {"%s", %s},' % (name, name))
    print("};")


main()
