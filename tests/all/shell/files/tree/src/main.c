int main(void) {
    return 0; /* TODO: more */
}
