// Runs a fuzz target without libFuzzer, for the short form in the tests: every file of the corpus, then inputs made
// from them and from nothing by a generator with a fixed seed. With clang, the preset `fuzz` links libFuzzer instead.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes mutate(Bytes bytes, std::mt19937_64& random) {
  const auto below = [&random](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  for (std::size_t changes = 1 + below(8); changes > 0; --changes) {
    switch (bytes.empty() ? 1 : below(5)) {
      case 0: bytes[below(bytes.size())] = static_cast<std::uint8_t>(random()); break;
      case 1: {
        Bytes more(1 + below(96));
        for (std::uint8_t& byte : more) byte = static_cast<std::uint8_t>(below(3) == 0 ? random() : below(10));
        const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1));
        bytes.insert(at, more.begin(), more.end());
        break;
      }
      case 2: bytes[below(bytes.size())] ^= static_cast<std::uint8_t>(1U << below(8)); break;
      case 3:
        if (below(8) == 0) bytes.resize(below(bytes.size() + 1));
        break;
      default: {
        const std::size_t from = below(bytes.size());
        const Bytes copy(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                         bytes.begin() + static_cast<std::ptrdiff_t>(from + below(bytes.size() - from + 1)));
        bytes.insert(bytes.end(), copy.begin(), copy.end());
      }
    }
  }
  if (bytes.size() > 4096) bytes.resize(4096);
  return bytes;
}

}  // namespace

/// Arguments: --seconds N (default 5), --seed S, --keep FILE (the input under way, for when it kills the program), and
/// files or directories of the corpus.
int main(int argc, char** argv) {
  double seconds = 5;
  std::uint64_t seed = 1;
  std::string keep;
  std::vector<Bytes> corpus(1);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--seconds" && i + 1 < argc) {
      seconds = std::strtod(argv[++i], nullptr);
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--keep" && i + 1 < argc) {
      keep = argv[++i];
    } else {
      std::vector<std::filesystem::path> files{argument};
      if (std::filesystem::is_directory(argument))
        files.assign(std::filesystem::directory_iterator(argument), std::filesystem::directory_iterator());
      std::sort(files.begin(), files.end());  // the same run on every file system
      for (const auto& file : files) {
        std::ifstream in(file, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
      }
    }
  }
  std::uint64_t executions = 0;
  const auto execute = [&](const Bytes& bytes) {
    if (!keep.empty()) {
      std::ofstream(keep, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++executions;
  };
  for (const Bytes& bytes : corpus) execute(bytes);
  std::mt19937_64 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    Bytes next = mutate(corpus[random() % corpus.size()], random);
    execute(next);
    if (corpus.size() < 512) {
      corpus.push_back(std::move(next));
    } else if (random() % 16 == 0) {
      corpus[random() % corpus.size()] = std::move(next);
    }
  }
  std::printf("%llu executions\n", static_cast<unsigned long long>(executions));
  return 0;
}
