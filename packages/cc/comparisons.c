/* The published compiler mixes up the comparisons of a conditional expression. */

static int integers(int which, int a, int b)
{
    return (which ? a < b : a > b) ? 1 : 0;
}

static int numbers(int which, double a, double b)
{
    if (which ? a <= b : !(a < b))
        return 1;
    return 0;
}

static int kept(int which, unsigned a, unsigned b)
{
    int result = which ? a != b : a >= b;
    return result;
}

int main(void)
{
    double none = 0.0 / (1.0 - 1.0);
    int a, b;
    for (a = -1; a <= 1; a++)
        for (b = -1; b <= 1; b++) {
            if (integers(1, a, b) != (a < b) || integers(0, a, b) != (a > b))
                return 1;
            if (numbers(1, a, b) != (a <= b) || numbers(0, a, b) != (a >= b))
                return 2;
            if (kept(1, a, b) != (a != b) || kept(0, a, b) != ((unsigned)a >= (unsigned)b))
                return 3;
        }
    /* Not a number is neither less than another nor not less. */
    if (numbers(1, none, 1) || !numbers(0, none, 1) || none == none || !(none != none))
        return 4;
    return 0;
}
