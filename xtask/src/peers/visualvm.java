// Opens a heap dump with VisualVM's own reader and says what is in it, as JSON.
import java.io.File;
import java.util.List;
import org.graalvm.visualvm.lib.jfluid.heap.FieldValue;
import org.graalvm.visualvm.lib.jfluid.heap.GCRoot;
import org.graalvm.visualvm.lib.jfluid.heap.Heap;
import org.graalvm.visualvm.lib.jfluid.heap.HeapFactory;
import org.graalvm.visualvm.lib.jfluid.heap.Instance;
import org.graalvm.visualvm.lib.jfluid.heap.JavaClass;
import org.graalvm.visualvm.lib.jfluid.heap.ObjectArrayInstance;
import org.graalvm.visualvm.lib.jfluid.heap.ObjectFieldValue;

class Dump {
    static final StringBuilder OUT = new StringBuilder();

    static void text(String text) {
        OUT.append('"');
        for (char unit : text.toCharArray()) {
            if (unit >= ' ' && unit < 127 && unit != '"' && unit != '\\') {
                OUT.append(unit);
            } else {
                OUT.append(String.format("\\u%04x", (int) unit));
            }
        }
        OUT.append('"');
    }

    static void key(String key) {
        char last = OUT.charAt(OUT.length() - 1);
        if (last != '{' && last != '[') {
            OUT.append(',');
        }
        if (key != null) {
            text(key);
            OUT.append(':');
        }
    }

    static String characters(Instance string) {
        Object value = string.getValueOfField("value");
        if (!(value instanceof org.graalvm.visualvm.lib.jfluid.heap.PrimitiveArrayInstance)) {
            return "";
        }
        StringBuilder text = new StringBuilder();
        for (Object unit : ((org.graalvm.visualvm.lib.jfluid.heap.PrimitiveArrayInstance) value).getValues()) {
            text.append(unit);
        }
        return text.toString();
    }

    static void instance(Instance found) {
        OUT.append('{');
        key("id");
        OUT.append(found.getInstanceId());
        key("class");
        text(found.getJavaClass().getName());
        if (found.getJavaClass().getName().equals("java.lang.String")) {
            key("text");
            text(characters(found));
        }
        key("fields");
        OUT.append('{');
        for (FieldValue value : (List<FieldValue>) found.getFieldValues()) {
            key(value.getField().getName());
            if (value instanceof ObjectFieldValue) {
                Instance target = ((ObjectFieldValue) value).getInstance();
                OUT.append(target == null ? "null" : Long.toString(target.getInstanceId()));
            } else {
                text(value.getValue());
            }
        }
        OUT.append('}');
        if (found instanceof ObjectArrayInstance) {
            key("items");
            OUT.append('[');
            for (Instance item : (List<Instance>) ((ObjectArrayInstance) found).getValues()) {
                key(null);
                OUT.append(item == null ? "null" : Long.toString(item.getInstanceId()));
            }
            OUT.append(']');
        }
        key("path");
        OUT.append('[');
        Instance at = found;
        for (int steps = 0; at != null && steps < 10000 && !at.isGCRoot(); steps++) {
            key(null);
            OUT.append(at.getInstanceId());
            at = at.getNearestGCRootPointer();
        }
        OUT.append("]}");
    }

    public static void main(String[] arguments) throws Exception {
        // What the reader keeps between runs stands beside the file: it must not be that of another.
        Heap heap = HeapFactory.createHeap(new File(arguments[0]));
        OUT.append('{');
        key("instances");
        OUT.append(heap.getSummary().getTotalLiveInstances());
        key("roots");
        OUT.append('[');
        for (Object root : heap.getGCRoots()) {
            key(null);
            OUT.append(((GCRoot) root).getInstance().getInstanceId());
        }
        OUT.append(']');
        key("classes");
        OUT.append('{');
        for (JavaClass found : (List<JavaClass>) heap.getAllClasses()) {
            key(found.getName());
            OUT.append(found.getInstancesCount());
        }
        OUT.append('}');
        key("objects");
        OUT.append('[');
        for (int place = 1; place < arguments.length; place++) {
            Instance found = heap.getInstanceByID(Long.parseLong(arguments[place]));
            key(null);
            if (found == null) {
                OUT.append("null");
            } else {
                instance(found);
            }
        }
        OUT.append("]}");
        System.out.println(OUT);
    }
}
