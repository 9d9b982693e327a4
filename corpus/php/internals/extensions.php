<?php
// Objects and resources of extensions, of those that are there. Then what corpus/php/mem/m5_mixed.php has, in words that need none.
function made($name) { return "made-" . $name . str_repeat("-", 20); }
function there($name, $make) { if (class_exists($name)) { try { return $make(); } catch (Throwable $e) { return null; } } }
$kept = [];
$kept['document'] = there('DOMDocument', function () { $document = new DOMDocument; $document->loadXML('<r><a x="1">t</a><b/></r>'); return [$document, $document->documentElement, $document->getElementsByTagName('a')]; });
$kept['simple'] = there('SimpleXMLElement', function () { $xml = simplexml_load_string('<r><a>1</a><a>2</a></r>'); return [$xml, $xml->a, iterator_to_array($xml, false)]; });
$kept['writer'] = there('XMLWriter', function () { $writer = new XMLWriter; $writer->openMemory(); $writer->writeElement('a', made('writer')); return $writer; });
$kept['database'] = there('PDO', function () { $database = new PDO('sqlite::memory:'); return [$database, $database->prepare('select 1')]; });
$kept['foreign'] = there('FFI', function () { $foreign = FFI::cdef('int abs(int);'); return [$foreign, FFI::new('char[1000]')]; });
$kept['archive'] = there('PharData', function () { return null; });
$kept['reflection'] = [new ReflectionClass('ArrayObject'), new ReflectionMethod('ArrayObject', 'count'), new ReflectionFunction('made'), new ReflectionParameter('made', 0), new ReflectionExtension('standard')];
$kept['dates'] = [new DateTime('2024-01-01'), new DateTimeImmutable, new DateTimeZone('Europe/Berlin'), new DateInterval('P1D'), new DatePeriod(new DateTime('2024-01-01'), new DateInterval('P1D'), 3)];
$kept['files'] = [new DirectoryIterator('.'), new SplFileObject(__FILE__), new SplTempFileObject, new SplFileInfo(__FILE__), new RecursiveIteratorIterator(new RecursiveDirectoryIterator(__DIR__))];
$kept['iterators'] = [new RegexIterator(new ArrayIterator(['a']), '/a/'), new CallbackFilterIterator(new ArrayIterator([1]), function () { return true; }), new RecursiveIteratorIterator(new RecursiveArrayIterator([[1], [2]])), new IteratorIterator(new ArrayIterator([made('iterator')]))];
foreach ($kept['iterators'] as $iterator) $iterator->rewind();
$kept['hash'] = hash_init('sha256');
$kept['decoded'] = json_decode('{"a":{"b":[1,2,{"c":"d"}]},"e":1.25}');
$kept['exception'] = new RuntimeException(made('exception'), 3, new LogicException('inner'));
$kept['resources'] = [opendir('.'), popen('true', 'r'), stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0), fopen('data:text/plain,x', 'r')];
if (function_exists('gzopen')) $kept['compressed'] = [gzopen('php://temp', 'w') ?: null, function_exists('deflate_init') ? deflate_init(ZLIB_ENCODING_GZIP) : null];
if (function_exists('curl_init')) $kept['transfer'] = curl_init('http://127.0.0.1:1/');
if (function_exists('xml_parser_create')) $kept['parser'] = xml_parser_create();
preg_match_all('/(?<word>\w+)/', made('words to be found'), $kept['matches']);
foreach (new ArrayIterator(['running']) as $running) {
    foreach (['held by the loop'] as $loop) require __DIR__ . '/ready.inc';
}
