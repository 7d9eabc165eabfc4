// The precompiled headers of all tests (lrpc_test_headers) need a program to be compiled for.
int main() {}
